"""./dev demo: unmodified programs from Debian exchange data on an emulated NIC; one of their packets is shown."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from harness import Bench, pair_problem  # noqa: E402
from suite_host import TSHARK  # noqa: E402


def show(title, text, pick=None):
    print(f"\n== {title}")
    for line in text.splitlines():
        if line.strip() and (pick is None or any(word in line for word in pick)):
            print("   " + line.rstrip())


def run_pair(bench, title, argv, pick, **options):
    print(f"\n== {title}")
    hosts = options.get("hosts", (None, None))
    for host, end in zip(hosts, ("&", "localhost")):
        words = (["--host", host] if host else []) + (["--capture", "demo.pcapng"] if "capture" in options else [])
        print(f"   $ verbena run {' '.join(words + ['--', *argv])} {end}")
    argv = [argv[0], "-p", "{port}", *argv[1:]]
    ends = bench.pair(argv, argv + ["localhost"], **options)
    problem = pair_problem(*ends)
    if problem:
        print(f"   failed: {problem}")
        return False
    for line in ends[1].output.splitlines():
        if any(word in line for word in pick):
            print("   " + line.rstrip())
    return True


def main():
    with Bench() as bench, tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "demo.pcapng"
        kernel = pathlib.Path("/sys/class/infiniband")
        real = sorted(p.name for p in kernel.iterdir()) if kernel.is_dir() else []
        print(f"RDMA devices of this machine's kernel: {', '.join(real) or 'none'}")
        info = bench.run(["ibv_devinfo"])
        show("what a program sees:  $ verbena run -- ibv_devinfo", info.output,
             ["hca_id", "fw_ver", "part_id", "state", "link_layer", "active_mtu"])
        good = info.code == 0
        good &= run_pair(bench, "two processes, 10,000 checked messages of 64 KiB",
                         ["ibv_rc_pingpong", "-g", "3", "-s", "65536", "-n", "10000", "-c"],
                         ["local address", "remote address", "bytes in", "iters in"])
        good &= run_pair(bench, "RDMA writes between two processes", ["ib_write_bw", "-F", "-s", "65536"],
                         ["#bytes", " 65536 "])
        good &= run_pair(bench, "the same between two virtual hosts, captured",
                         ["ib_write_bw", "-F", "-s", "4096", "-n", "5"],
                         ["#bytes", " 4096 "], hosts=("a", "b"), capture=capture)
        if capture.exists():
            command = [*TSHARK, "-r", str(capture), "-O", "infiniband"]
            lines = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
            first = lines.split("\nFrame ")[0]
            show("one of its packets:  $ tshark -r demo.pcapng -O infiniband", "\n".join(first.splitlines()[:34]))
        else:
            good = False
    print("\n" + ("Both programs are Debian's, unmodified; the NIC was ours." if good else "The demo did not work."))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

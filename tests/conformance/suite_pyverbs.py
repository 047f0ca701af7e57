"""The pyverbs tests that Debian ships with rdma-core, module by module, in fresh processes.

REQUIRED modules must have no failure, and only skips whose reason is in ALLOWED_SKIPS. All other modules are run and
listed in docs/conformance.md, but do not fail the suite: they need parts of the device that do not exist yet.
"""
import contextlib
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from harness import ROOT, Bench

DOCS = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # the Debian extension modules fit no other
MODULE_SECONDS = 150
REQUIRED = """test_addr test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mr test_pd
 test_parent_domain test_qp test_qpex test_relaxed_ordering test_shared_pd test_mlx5_query_port
 test_mlx5_huge_page test_mlx5_udp_sport test_mlx5_lag_affinity test_mlx5_uar test_mlx5_devx
 test_mlx5_var test_mlx5_pp test_mlx5_sched test_mlx5_dm_ops test_flow test_mlx5_flow test_rss_traffic
 test_mlx5_timestamp""".split()
REQUIRED_NEWER = "test_buf test_dmah test_mlx5_devx_async_events test_mlx5_rdma_ctrl test_phc_timestamp test_srq".split()
# Left out everywhere: other vendors' devices, and machines with a CUDA GPU.
OTHERS = {"test_efa_srd", "test_efadv", "test_cuda_dmabuf", "test_mlx5_cuda_umem", "test_mlx5_dmabuf"}
QUICK = ["test_addr", "test_pd", "test_cq", "test_cq_events", "test_device", "test_qp"]
# (cases, reason given, why it is all right): what a required module may skip.
ALLOWED_SKIPS = [
    (r"test_tx_packet_reformat", r".*", "changing packets in steering is later work"),
    (r"DmaBuf", r".*", "needs a DRM render node"),
    (r"odp|Odp", r".*", "on-demand paging is later work"),
    (r".*", r"(?i).*(ODP|on.demand|DRM|dma.?buf).*", "later work"),
    (r"huge", r"(?i).*huge.*", "the machine reserves no huge pages for us"),
    (r"is_fork_initialized", r".*", "an MR was registered earlier in the same process"),
    (r"test_query_gid_ex_bad_flow", r"(?i).*", "needs an empty slot in a short GID table"),
    (r"atomic_write", r".*", "mlx5 has no ATOMIC WRITE"),
]
# The same for what only newer tests have.
NEWER_SKIPS = [
    (r"rc_flush", r".*", "mlx5 has no FLUSH"),
    (r".*", r"(?i).*CC.DMA.bounce.*", "the machine is no confidential guest"),
    (r"tlp_var", r".*", "the device emulates no PCI functions"),
    (r"rdma_transport_domain|rdma_ctrl", r".*FDs file not found.*", "contexts with rights of their own are later work"),
    (r"phc_timestamp", r".*", "the device has no PTP clock"),
    (r"resize_srq", r".*", "mlx5 resizes no SRQ"),
]
# Cases of a newer rdma-core that contradict those of Debian 12, and fail: a device can be but one.
CONTRADICTED = {
    r"dm_atomic_ops": "a test-and-set leaves all ones here, which Debian 12's case wants; this one wants a one",
}


def unpack(into):
    """The tests, uncompressed. Where package documentation is not installed, they come from the package itself."""
    source = DOCS
    if not source.is_dir():
        scratch = into.parent / "rdma-core-package"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        subprocess.run(["apt-get", "download", "rdma-core"], cwd=scratch, check=True, capture_output=True, timeout=300)
        package = next(scratch.glob("rdma-core_*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(package), str(scratch)], check=True, timeout=60)
        source = scratch / str(DOCS)[1:]
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix == ".gz":
            (into / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, into / path.name)
    return into


def read_journal(path):
    """name -> last entry; a case that only began is told apart by its status."""
    entries = {}
    if path.exists():
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            entries[entry["name"]] = entry
    return entries


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def run_module(bench, folder, module, pattern="."):
    """Results of one module, or of its cases with the pattern in CLASS.CASE. A crash or hang costs the case in which it
    happened; the rest goes on."""
    journal = pathlib.Path(tempfile.mkstemp(prefix=module)[1])
    journal.unlink()
    driver = pathlib.Path(__file__).with_name("pyverbs_driver.py")
    started, limit = time.monotonic(), MODULE_SECONDS * bench.patience
    crashes = {}
    trouble = ""
    while True:
        before = len(read_journal(journal))
        left = limit - (time.monotonic() - started)
        argv = [PYTHON, str(driver), str(folder), module, str(journal), pattern]
        # Long enough for the case of a CQ too large for the device: the provider writes all of its 512 MiB before it asks,
        # which takes 2.5 s of a core, and a busy machine has little of one to give.
        end = bench.run(argv, seconds=min(90, max(5, left / bench.patience)))
        entries = read_journal(journal)
        open_cases = [name for name, entry in entries.items() if entry["status"] == "begun" and name not in crashes]
        for name in open_cases:
            crashes[name] = f"{end.ending()}: {last_line(end.output)}"
        if end.code == 0 and not open_cases:
            break
        if not open_cases and len(entries) == before:
            trouble = f"{end.ending()}: {last_line(end.output)}"
            break
        if time.monotonic() - started > limit:
            trouble = "the module ran out of time"
            break
    entries = read_journal(journal)
    journal.unlink(missing_ok=True)
    if trouble:
        yield {"name": f"{module} (whole module)", "status": "failed", "seconds": 0, "reason": trouble}
    for name, entry in entries.items():
        if name in crashes:
            entry = {"name": name, "status": "failed", "seconds": 0, "reason": crashes[name]}
        entry["reason"] = last_line(entry["reason"])
        entry["seconds"] = round(entry["seconds"], 2)
        entry["name"] = name.removeprefix("tests.")
        yield entry


def judge(entry, allowed=ALLOWED_SKIPS):
    """A required case may skip only for a listed reason."""
    if entry["status"] != "skipped":
        return entry
    for cases, reason, why in allowed:
        if re.search(cases, entry["name"]) and re.match(reason, entry["reason"]):
            return dict(entry, why=why)
    return dict(entry, status="failed", reason="skipped without need: " + entry["reason"])


def modules_in(folder):
    return sorted(p.stem for p in folder.glob("test_*.py") if p.stem not in OTHERS)


@contextlib.contextmanager
def huge_pages(count):
    """Has the machine reserve huge pages where it has none and lets us, and gives them back."""
    knob = pathlib.Path("/proc/sys/vm/nr_hugepages")
    ours = False
    with contextlib.suppress(OSError):
        if knob.read_text().strip() == "0":
            knob.write_text(str(count))
            ours = True
    try:
        yield
    finally:
        if ours:
            with contextlib.suppress(OSError):
                knob.write_text("0")


def run(quick, preset):
    folder = unpack(ROOT / "build" / "pyverbs-tests" / "tests")
    with huge_pages(16), Bench(preset) as bench:
        for module in QUICK if quick else REQUIRED:
            for entry in run_module(bench, folder, module):
                yield judge(entry)


def run_newer(quick, preset):
    """The modules of a newer rdma-core whose parts of the device exist."""
    folder = unpack(ROOT / "build" / "pyverbs-newer" / "tests")
    with huge_pages(16), Bench(preset) as bench:
        for module in QUICK if quick else [*REQUIRED, *REQUIRED_NEWER]:
            for entry in run_module(bench, folder, module):
                contradiction = [why for case, why in CONTRADICTED.items() if re.search(case, entry["name"])]
                if contradiction and entry["status"] == "failed":
                    entry = dict(entry, reason=f"{contradiction[0]}: {entry['reason']}")
                yield judge(entry, ALLOWED_SKIPS + NEWER_SKIPS)


# The raw layer and what stands on it: these cases may not skip for any reason. A pattern says which of a module's.
DEVX = {
    "test_mlx5_devx": ".", "test_mlx5_uar": ".", "test_mlx5_var": ".", "test_mlx5_pp": ".", "test_mlx5_sched": ".",
    "test_mlx5_lag_affinity": r"^(?!.*raw)", "test_mlx5_udp_sport": ".", "test_mlx5_query_port": ".",
    "test_mlx5_dm_ops": ".", "test_mlx5_timestamp": r"^(?!.*raw)", "test_device": r"DM|_dm", "test_mr": r"_dm_|DeviceMemory",
    "test_mlx5_rdmacm": r"ReservedQP",
}


def run_devx(quick, preset):
    """The cases of DEVX, none of which may skip."""
    folder = unpack(ROOT / "build" / "pyverbs-tests" / "tests")
    with Bench(preset) as bench:
        for module, pattern in DEVX.items():
            found = 0
            for entry in run_module(bench, folder, module, pattern):
                found += 1
                if entry["status"] == "skipped":
                    entry = dict(entry, status="failed", reason="skipped: " + entry["reason"])
                yield entry
            if not found:
                yield {"name": f"{module} (whole module)", "status": "failed", "seconds": 0, "reason": "no case ran"}


def run_other(quick, preset):
    """The modules that are not required: for the record."""
    if quick:
        return
    folder = unpack(ROOT / "build" / "pyverbs-tests" / "tests")
    with Bench(preset) as bench:
        for module in modules_in(folder):
            if module not in REQUIRED:
                yield from run_module(bench, folder, module)

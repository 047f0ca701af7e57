"""DPDK (Debian's) on the virtual node: testpmd finds the port by its network interface, and sends and receives by queues
that it writes and polls by hand. What its other drivers stop at is held to what docs/fidelity.md says.

Nothing of this needs huge pages, nor an interface of the machine."""
import os
import pathlib
import re
import shutil
import signal
import time

from harness import Bench, case, shell, tail

DEVICE = "0000:c8:00.0"
WHOLE = DEVICE + ",rxq_cqe_comp_en=0"  # CQEs are not compressed
CONNECTX_7, CONNECTX_6_DX, BLUEFIELD_2 = 0x1021, 0x101d, 0xa2d6
PERF = "dpdk-test-crypto-perf"
STARTED = "start packet forwarding"
ENOUGH, QUEUE = 1000, 512  # packets
MULTI_SEGMENT = 1 << 15  # RTE_ETH_TX_OFFLOAD_MULTI_SEGS: else the driver sends the first piece alone, and keeps the others


def eal(program, device=DEVICE):
    """Ordinary memory, nothing shared with other DPDK programs, and the thread that spins apart from the rest: the device
    works in a thread beside the first."""
    cpus = sorted(os.sched_getaffinity(0))
    return ["stdbuf", "-oL", program, "--no-huge", "--no-shconf", "--no-telemetry", "-m", "256",
            "--lcores", f"0@{cpus[0]},1@{cpus[-1]}", "-a", device]


def testpmd(*options, device=DEVICE):
    return [*eal("dpdk-testpmd", device), "--", "--total-num-mbufs=4096", "--no-lsc-interrupt", "--stats-period=1", *options]


def started(bench, argv, host):
    process = bench.start(argv, host=host)
    process.says(STARTED, 30 * bench.patience)
    return process


def counts_up_to(bench, process, name, enough):
    """Waits until testpmd, which prints its statistics every second, has counted that many."""
    deadline = time.monotonic() + 20 * bench.patience
    while time.monotonic() < deadline and process.alive():
        output = os.pread(process.log.fileno(), 1 << 22, 0).decode(errors="replace")
        if any(int(count) >= enough for count in re.findall(rf"{name}:\s*(\d+)", output)):
            return
        time.sleep(0.1)


def stop(bench, process):
    process.kill(signal.SIGINT)
    return process.wait(20 * bench.patience)


def totals(output):
    """name -> count: the sums over all ports that testpmd prints in the end."""
    accumulated = output.rpartition("Accumulated forward statistics")[2]
    return {name: int(count) for name, count in re.findall(r"([RT]X-\w+): (\d+)", accumulated)}


def ended(end):
    return "" if end.code == 0 else f"{end.ending()}: {tail(end.output)}"


def port(bench):
    """It probes, starts, and ends well."""
    argv = testpmd("--forward-mode=rxonly")
    end = stop(bench, started(bench, argv, "alone"))
    yield case("testpmd probes and starts", ended(end), end.seconds, shell(argv))
    wanted = {"its address": r"Port 0: 02(:[0-9A-F]{2}){5}", "its link": r"Port 0 Link up at 200 Gbps FDX",
              "its driver": r"Probe PCI driver: mlx5_pci \(15b3:1021\) device: " + DEVICE}
    for what, pattern in wanted.items():
        yield case(f"testpmd sees {what}", "" if re.search(pattern, end.output) else tail(end.output), 0)


def traffic(bench, name, options=(), peer_mode="rxonly", device=DEVICE):
    """What one host's port sends the other's receives or, where it has no buffer in time, counts as missed. The sender
    counts what it has put into its queue; what lies there when it stops the port is not sent."""
    receiver = testpmd(f"--forward-mode={peer_mode}", *options, device=device)
    sender = testpmd("--forward-mode=txonly", *options, device=device)
    first = started(bench, receiver, "b")
    second = started(bench, sender, "a")
    counts_up_to(bench, first, "RX-packets", ENOUGH)
    sent = stop(bench, second)
    time.sleep(0.5 * bench.patience)
    received = stop(bench, first)
    problem = ended(sent) or ended(received)
    counts = totals(sent.output), totals(received.output)
    left = counts[0].get("TX-packets", 0) - counts[1].get("RX-total", 0)
    if not problem and not (counts[1].get("RX-packets", 0) >= ENOUGH and 0 <= left <= QUEUE):
        problem = f"sent: {counts[0]}, received: {counts[1]}"
    return case(f"testpmd {name}", problem, received.seconds, shell(sender))


def profile(bench, part):
    """Environment for a device that is another part, by its PCI device id."""
    path = pathlib.Path(bench.run_dir) / f"part-{part:x}.toml"
    path.write_text(f"[device]\npart_id = {part:#x}\n")
    return {"VERBENA_PROFILE": str(path)}


def stops(bench, name, argv, reason, part):
    """It ends by itself, and says why; the driver is that of `part`."""
    end = bench.start(argv, env=profile(bench, part), host=f"part{part:x}").wait(40 * bench.patience)
    problem = "" if reason in end.output and end.code not in (None, 0) else f"{end.ending()}: {tail(end.output)}"
    return case(name, problem, end.seconds, shell(argv))


# (device class, part whose driver it is, what it lacks)
OTHERS = [("crypto", CONNECTX_6_DX, "mlx5_crypto: Not enough capabilities to support crypto operations"),
          ("regex", BLUEFIELD_2, "mlx5_regex: Not enough capabilities to support RegEx"),
          ("compress", BLUEFIELD_2, "mlx5_compress: Not enough capabilities to support compress operations")]
# The same of drivers that do not come to ask the device: it is no part of theirs, or devlink, which there is none of, comes first.
STRANGERS = [("crypto", CONNECTX_7, "No crypto devices type crypto_mlx5 available"),
             ("vdpa", CONNECTX_7, "mlx5_common: Failed to disable ROCE")]


def probe(kind):
    """It probes the driver of that device class, and needs a device with what the driver is for."""
    return [*eal(PERF, f"{DEVICE},class={kind}"), "--", "--devtype", "crypto_mlx5", "--optype", "cipher-only"]


def limits(bench):
    """How far it gets without what the device has not."""
    for kind, part, reason in OTHERS:
        yield stops(bench, f"test-crypto-perf finds no {kind} in the device", probe(kind), reason, part)
    for kind, part, reason in STRANGERS:
        yield stops(bench, f"test-crypto-perf: the {kind} driver does not take the device", probe(kind), reason, part)


def run(quick, preset):
    with Bench(preset) as bench:
        bench.stack = "system"
        if not shutil.which("dpdk-testpmd"):
            yield case("testpmd", "skip: the package dpdk-dev is not installed", 0)
            return
        yield from port(bench)
        yield traffic(bench, "sends and another receives")
        yield traffic(bench, "sends and another receives, CQEs whole", device=WHOLE)
        yield from limits(bench)
        if not quick:
            yield traffic(bench, "by two queues", ["--rxq=2", "--txq=2"])
            yield traffic(bench, "frames of 1500 bytes", ["--txpkts=1500"])
            yield traffic(bench, "frames of four pieces", ["--txpkts=64,200,300,64", f"--tx-offloads={MULTI_SEGMENT:#x}"])

"""perftest's raw Ethernet programs: frames of one process, steered into the receive queues of another.

They exchange nothing beforehand, so the server gets a moment to set up its flow. The numbers of frames that the two sides
count are compared where they are fixed, and a capture must show ordinary Ethernet frames.
"""
import pathlib
import subprocess
import time

from harness import Bench, case, pair_problem, shell
from suite_perftest import result_rows

SERVER, CLIENT = "02:aa:00:00:00:01", "02:aa:00:00:00:02"
IPS = ["-J", "198.18.9.1", "-j", "198.18.9.2"]
UDP = ["-K", "2000", "-k", "3000"]
SETTLE_SECONDS = 1.5
# (program, options, in the quick subset). Not -e: perftest arms no CQ there and sleeps for ever, on any NIC.
RUNS = [
    ("raw_ethernet_bw", [], True),
    ("raw_ethernet_bw", ["-n", "20000", "-s", "64"], False),
    ("raw_ethernet_bw", ["-s", "1500"], False),
    ("raw_ethernet_bw", ["-D", "1"], True),
    ("raw_ethernet_bw", IPS, False),
    ("raw_ethernet_bw", IPS + UDP, True),
    ("raw_ethernet_bw", IPS + UDP + ["--tcp"], False),
    ("raw_ethernet_bw", ["-l", "8"], False),
    ("raw_ethernet_bw", ["--promiscuous"], True),
    ("raw_ethernet_lat", [], True),
    ("raw_ethernet_lat", ["-s", "1500", "-n", "2000"], False),
    ("raw_ethernet_lat", IPS + UDP, False),
]


def measure(bench, program, options, hosts=(None, None), capture=None):
    """(problem, seconds, command)"""
    common = [program, "-d", "mlx5_0", "-F", *options]
    at_server = common + ["--server", "-B", SERVER, "-E", CLIENT]
    at_client = common + ["--client", "-B", CLIENT, "-E", SERVER]
    first = bench.start(at_server, host=hosts[0], capture=capture)
    time.sleep(SETTLE_SECONDS * bench.patience)
    second = bench.start(at_client, host=hosts[1], capture=capture)
    deadline = time.monotonic() + 40 * bench.patience
    while time.monotonic() < deadline and (first.alive() or second.alive()):
        time.sleep(0.02)
    ends = first.wait(0.1), second.wait(0.1)
    problem = pair_problem(*ends)
    rows = [result_rows(end.output) for end in ends]
    if not problem and not all(rows):
        problem = "one side printed no result"
    # One that is given a time goes on counting in the other's last moments.
    counts = [int(row[0][1]) for row in rows if row]
    if not problem and "-D" not in options and counts[0] != counts[1]:
        problem = f"the server counts {counts[0]} frames, the client {counts[1]}"
    return problem, ends[1].seconds, shell(at_client)


def frames_of(path):
    """Destination, source and protocol of what a capture has, as tshark reads it."""
    argv = ["tshark", "-r", str(path), "-T", "fields", "-e", "eth.dst", "-e", "eth.src", "-e", "udp.dstport"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120).stdout.splitlines()


def captured(bench):
    path = pathlib.Path(bench.run_dir) / "frames.pcap"
    problem, seconds, command = measure(bench, "raw_ethernet_bw", IPS + UDP + ["-n", "50"], capture=path)
    if not problem:
        lines = frames_of(path)
        wanted = f"{SERVER}\t{CLIENT}\t2000"
        if lines.count(wanted) < 50:
            problem = f"{lines.count(wanted)} of {len(lines)} captured frames are ours: {lines[:2]}"
    return case("raw_ethernet_bw captured", problem, seconds, command)


def run(quick, preset):
    with Bench(preset) as bench:
        for program, options, short in RUNS:
            if quick and not short:
                continue
            if preset == "tsan" and "-D" in options:
                continue  # the program's own signal handler opens files, which TSan reports
            problem, seconds, command = measure(bench, program, options)
            yield case(f"{program} {shell(options)}".strip(), problem, seconds, command)
        for program in ("raw_ethernet_bw", "raw_ethernet_lat"):
            problem, seconds, command = measure(bench, program, [], hosts=("a", "b"))
            yield case(f"{program} between virtual hosts", problem, seconds, command)
        if Bench.stack == "own":
            yield captured(bench)
        end = bench.run(["raw_ethernet_fs_rate", "--server", "-d", "mlx5_0", "-F", "-B", SERVER, "-E", CLIENT, "-n", "100"],
                        seconds=40)
        yield case("raw_ethernet_fs_rate", "" if end.code == 0 else end.ending() + ": " + end.output[-300:], end.seconds)

"""The product as a user meets it: the `verbena` command, captures of real traffic, virtual hosts."""
import json
import pathlib
import subprocess
import tempfile
import time

from harness import Bench, case, free_port, pair_problem, shell, tail

USAGE = [  # (arguments, exit status, what the one line must say)
    ([], 2, "what to do?"),
    (["bogus"], 2, "no such command: bogus"),
    (["run"], 2, "which program?"),
    (["run", "--bogus", "--", "true"], 2, "unknown option --bogus"),
    (["run", "--devices", "0", "--", "true"], 2, "not in range"),
    (["run", "--host", "a/b", "--", "true"], 2, "a host name is"),
    (["run", "--profile", "/nonexistent", "--", "true"], 2, "does not exist"),
    (["run", "--", "no-such-program"], 127, "cannot run no-such-program"),
    (["explain", "tomato"], 2, "not a 32-bit number"),
    (["explain"], 2, "which syndrome?"),
]
# tshark guesses RPC-over-RDMA from any payload, and takes the zero UDP checksum over IPv6 for an error.
TSHARK = ["tshark", "--disable-protocol", "rpcordma", "-o", "udp.ignore_ipv6_zero_checksum:TRUE"]


def dissect(path, *arguments):
    done = subprocess.run([*TSHARK, "-r", str(path), *arguments], capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()


def usage_cases(bench):
    verbena = str(bench.build / "bin" / "verbena")
    for arguments, status, text in USAGE:
        done = subprocess.run([verbena, *arguments], capture_output=True, text=True, timeout=30, env=bench.env)
        good = done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1 and not done.stdout
        yield case(f"verbena {shell(arguments)}", "" if good else f"exit {done.returncode}: {done.stderr}", 0)
    done = subprocess.run([verbena, "--help"], capture_output=True, text=True, timeout=30, env=bench.env)
    yield case("verbena --help", "" if done.returncode == 0 and "verbena run" in done.stdout else done.stderr, 0)
    listing = [verbena, "devices", "--devices", "2"]
    done = subprocess.run(listing, capture_output=True, text=True, timeout=60, env=bench.env)
    good = done.returncode == 0 and "mlx5_1" in done.stdout and "ACTIVE" in done.stdout and "RoCE v2" in done.stdout
    yield case("verbena devices --devices 2", "" if good else tail(done.stdout + done.stderr), 0)
    done = subprocess.run([verbena, "explain", "--all"], capture_output=True, text=True, timeout=30, env=bench.env)
    yield case("verbena explain --all", "" if done.returncode == 0 and done.stdout.count("\n") > 10 else done.stderr, 0)
    if done.stdout:
        first = done.stdout.split()[0]
        one = subprocess.run([verbena, "explain", first], capture_output=True, text=True, timeout=30, env=bench.env)
        yield case("verbena explain SYNDROME", "" if one.returncode == 0 and first in one.stdout else one.stderr, 0)
    # Not a shell: libtsan, which the tsan preset loads into every program, kills those by itself.
    code = bench.run(["/usr/bin/python3", "-c", "raise SystemExit(7)"])
    yield case("the program's exit status is passed on", "" if code.code == 7 else code.ending(), 0)


def capture_problem(path, opcodes):
    if not path.exists():
        return "there is no capture"
    rows = dissect(path, "-T", "json", "-e", "_ws.malformed", "-e", "infiniband.bth.opcode", "-e", "frame.protocols",
                   "-e", "infiniband.invariant.crc", "-e", "frame.interface_name")
    frames = [row["_source"]["layers"] for row in json.loads("\n".join(rows) or "[]")]
    if not frames:
        return "tshark reads no frame"
    malformed = [f for f in frames if f.get("_ws.malformed")]
    if malformed:
        return f"{len(malformed)} of {len(frames)} frames are malformed: {malformed[0]}"
    seen = {int(f["infiniband.bth.opcode"][0]) for f in frames if "infiniband.bth.opcode" in f}
    missing = opcodes - seen
    return f"opcodes {sorted(missing)} are missing; there are {sorted(seen)}" if missing else ""


def capture_cases(bench, folder):
    # (name, program and options, BTH opcodes that must be there)
    runs = [
        ("RC send", ["ibv_rc_pingpong", "-g", "3", "-s", "3000", "-n", "20", "-c"], {0, 1, 2, 17}),
        ("RC over RoCE v1", ["ibv_rc_pingpong", "-g", "0", "-s", "64", "-n", "5"], {4, 17}),
        ("RC over IPv6", ["ibv_rc_pingpong", "-g", "1", "-s", "64", "-n", "5"], {4, 17}),
        ("UC send", ["ibv_uc_pingpong", "-g", "3", "-s", "64", "-n", "5"], {0x24}),
        ("UD send", ["ibv_ud_pingpong", "-g", "3", "-s", "64", "-n", "5"], {0x64}),
        ("RC write", ["ib_write_bw", "-F", "-s", "4096", "-n", "10"], {17}),
        ("RC read", ["ib_read_lat", "-F", "-s", "64", "-n", "10"], {12, 16}),
        ("RC atomic", ["ib_atomic_lat", "-F", "-n", "10"], {20, 18}),
    ]
    checker = pathlib.Path(__file__).parent.parent / "unit" / "fabric" / "check_capture.py"
    for number, (name, command, opcodes) in enumerate(runs):
        path = pathlib.Path(folder) / f"{number}.pcapng"
        argv = [*command, "-p", "{port}"]
        ends = bench.pair(argv, argv + ["localhost"], capture=path, seconds=60)
        problem = pair_problem(*ends) or capture_problem(path, opcodes)
        if not problem:
            judged = subprocess.run(["/usr/bin/python3", str(checker), str(path), "-1"], capture_output=True, text=True,
                                    timeout=120)
            problem = "" if judged.returncode == 0 else tail(judged.stdout + judged.stderr, 2)
        shown = shell(["verbena", "run", "--capture", "F", "--", *argv])
        yield case(f"capture: {name}", problem, ends[1].seconds, shown)


def example_cases(bench, folder):
    """The examples, two processes each. What they did is read in the capture."""
    programs = bench.build / "bin" / "examples"
    path = pathlib.Path(folder) / "udp_sport.pcapng"
    ends = example_pair(bench, programs / "udp_sport", path)
    problem = pair_problem(*ends)
    if not problem:
        # A SEND leaves after each change, by the port that was set.
        sent = dissect(path, "-Y", "infiniband.bth.opcode == 4", "-T", "fields", "-e", "udp.srcport")
        problem = "" if len(sent) == 4 and sent[1:] == [str(p) for p in (0xc222, 0xc333, 0xc444)] else f"UDP source ports {sent}"
    yield case("example: udp_sport", problem, ends[1].seconds)
    path = pathlib.Path(folder) / "devx_queues.pcapng"
    ends = example_pair(bench, programs / "devx_queues", path)
    sent = dissect(path, "-Y", "infiniband.bth.opcode == 4", "-T", "fields", "-e", "infiniband.bth.destqp")
    problem = pair_problem(*ends) or ("" if len(sent) == 20 else f"{len(sent)} messages")
    yield case("example: devx_queues", problem, ends[1].seconds)
    path = pathlib.Path(folder) / "lag_ports.pcapng"
    ends = example_pair(bench, programs / "lag_ports", path, failing_port=2)
    problem = pair_problem(*ends) or lag_problem(path)
    yield case("example: lag_ports", problem, ends[1].seconds)


def example_pair(bench, program, path, failing_port=None):
    port = str(free_port())
    first = bench.start([str(program)], host="one", env={"EXAMPLE_PORT": port})
    second = bench.start([str(program), "localhost"], host="two", capture=path, env={"EXAMPLE_PORT": port})
    if failing_port:
        second.says("take port", 30 * bench.patience)  # its messages of before are sent then
        subprocess.run([str(bench.build / "bin" / "verbena"), "port", "--host", "two", "mlx5_0", str(failing_port), "down"],
                       env=bench.env, timeout=30, check=False)
    return first.wait(30 * bench.patience), second.wait(30 * bench.patience)


def lag_problem(path):
    """Four queue pairs sent a message by ports 1, 2, 1, 2, then port 2 failed and all sent by port 1."""
    sent = dissect(path, "-Y", "infiniband.bth.opcode == 4", "-T", "fields", "-e", "infiniband.bth.destqp", "-e",
                   "frame.interface_name")
    rows = [row.split() for row in sent]
    if len(rows) != 8 or [qp for qp, _ in rows[:4]] != [qp for qp, _ in rows[4:]]:
        return f"messages {rows}"
    before, after = ([name for _, name in part] for part in (rows[:4], rows[4:]))
    good = before[0] == before[2] != before[1] == before[3] and after == [before[0]] * 4
    return "" if good else f"left by {before}, then by {after}"


def rate_problem(path, filter, megabits, slower):
    """Frames that the filter lets pass, for a second: their gaps must be those of the rate (up to `slower` times those
    where the program itself is slow)."""
    rows = dissect(path, "-Y", filter, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len")
    frames = [(float(time), int(length)) for time, length in (row.split() for row in rows)]
    start = frames[0][0] + 0.05 if frames else 0  # a pause before it lets the first ones go early
    frames = [frame for frame in frames if start <= frame[0] < start + 1]
    if len(frames) < 100:
        return f"only {len(frames)} frames"
    gaps = [after[0] - before[0] for before, after in zip(frames, frames[1:])]
    # What a frame takes at this rate is the gap behind it.
    wanted = [length * 8 / (megabits * 1e6) for _, length in frames[:-1]]
    ratio = sum(gaps) / sum(wanted)
    even = sum(0.5 * w < g < 1.5 * slower * w for g, w in zip(gaps, wanted)) / len(gaps)
    if not 0.9 <= ratio <= 1.1 * slower:
        return f"gaps are {ratio:.3f} of those of {megabits} Mbit/s"
    # They must not come in bursts that only the average forgives; a busy machine wakes some late.
    return "" if even > 0.5 else f"only {even:.0%} of {len(gaps)} gaps are near that of the rate"


def rate_cases(bench, folder):
    program = str(bench.build / "bin" / "programs" / "program_rates")
    responses = "infiniband.bth.opcode >= 13 and infiniband.bth.opcode <= 15"
    for who, megabits, passes in [("requester", 10, "infiniband.bth.opcode == 10"),
                                  ("requester", 40, "infiniband.bth.opcode == 10"),
                                  ("responder", 10, responses), ("paced", 10, "eth.type == 0x88b5")]:
        path = pathlib.Path(folder) / f"rate_{who}_{megabits}.pcapng"
        for attempt in range(6):  # on a machine with other work the sender may not get the processor for a whole second
            time.sleep(min(attempt, 1) * 3)
            path.unlink(missing_ok=True)
            end = bench.run([program, who, str(megabits)], seconds=30, capture=path)
            if end.code != 0:
                problem = f"{end.ending()}: {tail(end.output)}"
                break
            problem = rate_problem(path, passes, megabits, bench.slower)
            if not problem:
                break
        what = "packet pacing" if who == "paced" else f"a {who}'s leaf"
        yield case(f"capture: {megabits} Mbit/s of {what}", problem, end.seconds)


def run(quick, preset):
    del quick  # short in any case
    with Bench(preset) as bench, tempfile.TemporaryDirectory() as folder:
        yield from usage_cases(bench)
        yield from capture_cases(bench, folder)
        yield from example_cases(bench, folder)
        yield from rate_cases(bench, folder)

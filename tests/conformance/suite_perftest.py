"""perftest: every program over every connection type it offers (DC and raw Ethernet belong to other work), with
the matrix of options. perftest checks counts and completions, not data; the ping-pongs and pyverbs check data."""
import re

from harness import Bench, case, pair_problem, shell

CONNECTIONS = {
    "ib_send_lat": ["RC", "UC", "UD", "XRC"], "ib_send_bw": ["RC", "UC", "UD", "XRC"],
    "ib_write_lat": ["RC", "UC", "XRC"], "ib_write_bw": ["RC", "UC", "XRC"],
    "ib_read_lat": ["RC", "XRC"], "ib_read_bw": ["RC", "XRC"],
    "ib_atomic_lat": ["RC", "XRC"], "ib_atomic_bw": ["RC", "XRC"],
}
ATOMICS = ["CMP_AND_SWAP", "FETCH_AND_ADD"]


def xrc_options_of(program):
    """The transport is RC's: what is its own is the receive queue, and several connections."""
    kind, shape = program.split("_")[1:]
    start = ["-A", ATOMICS[1]] if kind == "atomic" else []
    yield start, kind != "read"
    if kind != "atomic":
        yield start + ["-a"], False
        yield start + ["-s", "1048576"], kind == "send" and shape == "bw"
    if kind in ("send", "read", "atomic"):
        yield start + ["-e"], kind == "send" and shape == "lat"
    if kind in ("send", "write"):
        yield start + ["-I", "64", "-s", "64"], False
    if shape == "bw":
        yield start + ["-q", "4"], kind == "send"
        yield start + ["-b"], False


def options_of(program, connection):
    """(options, in the quick subset) for one program and connection."""
    if connection == "XRC":
        yield from xrc_options_of(program)
        return
    kind, shape = program.split("_")[1:]
    bandwidth = shape == "bw"
    base = [[]] if kind != "atomic" else [["-A", a] for a in ATOMICS]
    for start in base:
        yield start, True
        yield start + ["-n", "5"], False  # perftest takes no fewer
        yield start + ["-n", "100000"] + ([] if kind == "atomic" else ["-s", "64"]), False
    start = base[-1]
    if kind != "atomic":
        yield start + ["-a"], kind != "read" and connection != "UC"
        yield start + ["-s", "1048576" if connection != "UD" else "4096"], bandwidth
        yield start + ["-s", "8", "-m", "256"], False
    if kind in ("send", "read", "atomic"):
        yield start + ["-e"], connection == "RC"
    if kind in ("send", "write"):
        for inline in (0, 64, 512 if bandwidth else 200):
            yield start + ["-I", str(inline), "-s", "64"], False
    if kind in ("read", "atomic"):
        yield start + ["-o", "1"], False
        yield start + ["-o", "16"], False
    if kind == "send":
        if connection == "RC":  # with so few receives an unreliable service loses messages, on any NIC
            yield start + ["-r", "8"], False
        yield start + ["-r", "4096"], False
        if connection in ("RC", "UD"):
            yield start + ["--use-srq"], True
            yield start + ["--use-srq", "-e"], False
    if connection == "UD":
        # ib_send_bw refuses a multicast GID beside an IPv4 one
        yield start + (["-g", "-x", "1"] if bandwidth else ["-g"]), not bandwidth
    if not bandwidth:
        yield start + ["-D", "1"], False
        return
    yield start + ["-b"], kind != "read"
    yield start + ["-q", "16"], connection != "UC"
    yield start + ["-q", "16", "-b"], False
    yield start + ["-t", "8"], False
    yield start + ["-t", "1024"], False
    yield start + ["-l", "8"], connection == "RC" and kind in ("send", "write")
    yield start + ["-l", "32", "-q", "4", "-n", "3200"], False  # a multiple of the list
    yield start + ["-Q", "1"], False
    yield start + ["-Q", "64"], False
    yield start + ["-N"], False
    yield start + ["-D", "1"], False
    yield start + ["--use_old_post_send"], connection == "RC" and kind == "write"
    yield start + ["--mr_per_qp", "-q", "4"], False
    if kind == "send":
        yield start + ["--use-srq", "-q", "16"] if connection in ("RC", "UD") else start + ["-q", "2"], False
        yield start + ["--recv_post_list", "8"], False
        yield start + ["--reversed"], False


def cases(quick):
    seen = set()
    plain = quick and Bench.stack != "own"  # the device is the same: one run of each shows the way to it
    for program, connections in CONNECTIONS.items():
        for connection in connections:
            for options, short in options_of(program, connection):
                key = (program, connection, tuple(options))
                if key in seen or (quick and not short) or (plain and options not in ([], ["-A", ATOMICS[0]], ["-e"])):
                    continue
                seen.add(key)
                yield program, connection, options


def result_rows(output):
    """The rows of perftest's table: lists of numbers."""
    rows = []
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and all(re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?|[-+]?(inf|nan)", w) for w in words):
            rows.append([float(w) for w in words])
    return rows


def measure(bench, program, connection, options, hosts=(None, None), device=("mlx5_0", "mlx5_0"), devices=None):
    common = ["-F", "-p", "{port}", "-c", connection, *options]
    server = [program, "-d", device[0], *common]
    client = [program, "-d", device[1], *common, "localhost"]
    # UC and UD lose what finds no receive posted, and perftest waits for it: on a machine that is busy with other things
    # a receiver may well be late. Lost messages are no failure of the NIC, so these get another chance.
    for _ in range(3 if connection in ("UC", "UD") else 1):
        ends = bench.pair(server, client, seconds=60, hosts=hosts, devices=devices)
        problem = pair_problem(*ends)
        if ends[0].code != 17 and ends[0].code is not None:
            break
    rows = result_rows(ends[1].output)
    if not problem and not rows and "-D" not in options:
        problem = "the client printed no result"
    return problem, rows, ends[1].seconds, shell(client)


def run(quick, preset):
    with Bench(preset) as bench:
        for program, connection, options in cases(quick):
            problem, _, seconds, command = measure(bench, program, connection, options)
            yield case(f"{program} -c {connection} {shell(options)}".strip(), problem, seconds, command)
        for program in ("ib_write_bw", "ib_send_lat"):
            problem, _, seconds, command = measure(bench, program, "RC", [], device=("mlx5_0", "mlx5_1"), devices=2)
            yield case(f"{program} between two devices", problem, seconds, command)
            problem, _, seconds, command = measure(bench, program, "RC", [], hosts=("a", "b"))
            yield case(f"{program} between virtual hosts", problem, seconds, command)

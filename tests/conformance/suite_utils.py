"""ibverbs-utils: device listing and the five ping-pongs, polled and with events, checked data, 1 B to 4 MiB."""
import re

from harness import Bench, case, pair_problem, shell, tail

SIZES = [1, 7, 64, 1024, 4096, 65536, 1 << 20, 4 << 20]
QUICK_SIZES = [1, 4096, 1 << 20]
UD_SIZES = [1, 7, 64, 1024, 2048]  # what fits into one packet
# The GIDs a port begins with: RoCE v1 and v2 of the link-local address, then of the IPv4 address.
GIDS = {0: "v1 link-local", 1: "v2 link-local", 2: "v1 IPv4", 3: "v2 IPv4"}


def single_cases(bench):
    listing = bench.run(["ibv_devices"])
    found = re.search(r"^\s*mlx5_0\s+[0-9a-f]{16}", listing.output, re.M)
    yield case("ibv_devices", "" if listing.code == 0 and found else f"{listing.ending()}: {tail(listing.output)}",
               listing.seconds)
    info = bench.run(["ibv_devinfo", "-v"])
    wanted = ["vendor_id:\\s+0x02c9", "state:\\s+PORT_ACTIVE", "link_layer:\\s+Ethernet", "max_mr_size:\\s+0x[0-9a-f]+",
              "GID\\[\\s*0\\]:", "RoCE v2", "ATOMIC_HCA|atomic_cap:"]
    missing = [w for w in wanted if not re.search(w, info.output)]
    yield case("ibv_devinfo -v", "" if info.code == 0 and not missing else f"{info.ending()}, lacks {missing}: "
               + tail(info.output), info.seconds)
    two = bench.run(["ibv_devices"], devices=2)
    yield case("ibv_devices, two devices", "" if "mlx5_1" in two.output else tail(two.output), two.seconds)
    watch = bench.start(["ibv_asyncwatch"])
    watch.popen.poll()
    end = watch.wait(2)  # it runs until it is stopped
    yield case("ibv_asyncwatch starts", "" if end.code is None and "mlx5_0" in end.output else
               f"{end.ending()}: {tail(end.output)}", end.seconds)


def pingpongs(quick):
    """(program, options, size, iterations)"""
    iterations = 1000 if quick else 10000
    for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_srq_pingpong", "ibv_ud_pingpong"):
        sizes = UD_SIZES if program == "ibv_ud_pingpong" else SIZES
        if quick:
            sizes = [s for s in sizes if s in QUICK_SIZES] + ([2048] if program == "ibv_ud_pingpong" else [])
        for events in ([], ["-e"]):
            for size in sizes:
                yield program, events, size, iterations
    for events in ([], ["-e"]):
        for size in QUICK_SIZES if quick else SIZES:
            # It makes send queues as long as the test; 10000 WQEs of XRC are more than a queue of this device holds, by
            # rdma-core's reckoning as well.
            yield "ibv_xsrq_pingpong", events, size, min(iterations, 8000)
    for option in (["-N"], ["-t"]):
        yield "ibv_rc_pingpong", option, 4096, iterations


def pingpong(bench, program, options, size, iterations, gid=3, hosts=(None, None)):
    # ibv_srq_pingpong moves the iterations on each of its 16 QPs.
    if program == "ibv_srq_pingpong":
        iterations = max(100, iterations // (16 if size < 1 << 20 else 64))
    # ibv_xsrq_pingpong checks what it counts, not data; its -c is something else.
    xrc = program == "ibv_xsrq_pingpong"
    argv = [program, "-p", "{port}", "-g", str(gid), "-s", str(size), "-n", str(iterations), *([] if xrc else ["-c"]),
            *options]
    name = f"{program} {shell(options + ['-s', str(size), '-n', str(iterations)])}"
    limit = 60 + size * iterations / 2e8
    server, client = bench.pair(argv, argv + ["localhost"], seconds=limit, hosts=hosts)
    problem = pair_problem(server, client)
    if not problem and re.search(r"invalid data|Couldn't|Failed", server.output + client.output):
        problem = tail(server.output) + tail(client.output)
    if not problem and not re.search(r"remote: LID" if xrc else r"\d+ iters in", client.output):
        problem = "no summary: " + tail(client.output)
    return case(name, problem, client.seconds, shell(argv))


def confined_cases(bench, quick):
    """Less of everything, for the suite that is about where programs run and not about what they do."""
    yield from single_cases(bench)
    for program, options, size, iterations in pingpongs(True):
        if not quick or size == 4096 or (size, program) == (2048, "ibv_ud_pingpong"):
            yield pingpong(bench, program, options, size, iterations)
    result = pingpong(bench, "ibv_rc_pingpong", [], 1024, 1000, hosts=("a", "b"))
    yield dict(result, name="ibv_rc_pingpong between virtual hosts")


def run(quick, preset):
    with Bench(preset) as bench:
        yield from single_cases(bench)
        for program, options, size, iterations in pingpongs(quick):
            yield pingpong(bench, program, options, size, iterations)
        for gid, what in GIDS.items():
            result = pingpong(bench, "ibv_rc_pingpong", [], 4096, 1000, gid)
            yield dict(result, name=f"ibv_rc_pingpong over GID {gid} ({what})")
        for program in ("ibv_rc_pingpong", "ibv_ud_pingpong"):
            result = pingpong(bench, program, [], 1024, 1000, hosts=("a", "b"))
            yield dict(result, name=f"{program} between virtual hosts")

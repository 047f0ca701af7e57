"""UCX (Debian's) on the virtual node: what it lists, its perftest over each transport, and tests/peers/ucp_data, which
moves messages, RMA and atomics between two processes and checks every byte. rc_mlx5 (rc_x) and ud_mlx5 (ud_x) write
work requests and doorbells by hand; with DEVX rc_x builds its queues by commands, with a cyclic pool of receives (RMP)."""
import re

from harness import Bench, case, pair_problem, shell, tail

LISTED = ["rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5"]
# (transport, whether DEVX is used)
TRANSPORTS = [("rc_v", "n"), ("rc_x", "y"), ("ud_v", "n"), ("ud_x", "y")]
WITHOUT_DEVX = [("rc_x", "n"), ("ud_x", "n")]
# Tests of ucx_perftest; those of atomics know 4 and 8 bytes only.
ATOMICS = ["ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"]
TESTS = ["tag_lat", "tag_bw", "ucp_am_lat", "ucp_am_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "stream_lat"]
SIZES = [8, 4096, 1 << 20, 16 << 20]
THREADS = ["-T", "2", "-M", "multi"]
CHECKED = ["tag", "am", "put", "get", "atomics"]  # of ucp_data


def perftests(quick):
    """(test, size, options)"""
    if quick:
        yield from (("tag_lat", 8, []), ("ucp_fadd", 8, []))
        return
    for test in TESTS:
        for size in SIZES:
            yield test, size, []
    for test in ATOMICS:
        yield test, 4, []
        yield test, 8, []
    for test in ("tag_lat", "tag_bw", "ucp_put_bw", "ucp_get", "ucp_fadd"):
        yield test, 8, THREADS


def checked_runs(quick, transport):
    """Command lines of ucp_data."""
    if quick:
        yield ["--most", "70000", "--rounds", "2", *CHECKED, "stream"]
        if transport == "rc_x":
            yield ["--most", "9000", "--rounds", "1", "--threads", "2", "--shared", "tag", "am", "atomics"]
        return
    for test in CHECKED + ["stream"]:
        yield ["--rounds", "2", test]
        yield ["--threads", "3", "--most", "1050000", "--rounds", "2", test]
        if test != "stream":
            yield ["--threads", "3", "--shared", "--most", "1050000", "--rounds", "2", test]


def perftest(bench, title, test, size, options):
    server = ["ucx_perftest", "-p", "{port}", *options]
    # A warm-up of one and few of the large: it is about what arrives, not about how fast.
    count = "200" if size < 1 << 20 else "10"
    client = [*server, "localhost", "-t", test, "-s", str(size), "-n", count, "-w", "5", "-f"]
    ends = bench.pair(server, client, seconds=40)
    name = f"{title} {test} {size} {shell(options)}".strip()
    return case(name, pair_problem(*ends), ends[1].seconds, f"UCX_TLS={bench.env['UCX_TLS']} " + shell(client))


def checked(bench, title, options):
    end = bench.run([str(bench.build / "bin" / "peers" / "peer_ucp_data"), *options], seconds=60)
    problem = "" if end.code == 0 and "good" in end.output else f"{end.ending()}: {tail(end.output)}"
    return case(f"{title} checked {shell(options)}", problem, end.seconds, shell(end.argv))


def run(quick, preset):
    with Bench(preset) as bench:
        bench.stack = "system"
        bench.env.update(UCX_NET_DEVICES="mlx5_0:1", UCX_WARN_UNUSED_ENV_VARS="n")
        listing = bench.run(["ucx_info", "-d"], seconds=30)
        for name in LISTED:
            found = re.search(rf"Transport: {name}$", listing.output, re.M)
            yield case(f"ucx_info -d lists {name}", "" if found else tail(listing.output), 0)
        for transport, devx in TRANSPORTS if quick else TRANSPORTS + WITHOUT_DEVX:
            bench.env.update(UCX_TLS=transport + ",self", UCX_IB_MLX5_DEVX=devx)
            title = transport + (" devx" if devx == "y" else "")
            for options in checked_runs(quick, transport):
                yield checked(bench, title, options)
            for test, size, options in perftests(quick):
                yield perftest(bench, title, test, size, options)

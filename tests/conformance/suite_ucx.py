"""UCX (Debian's) on the virtual node: what it lists, and its perftest over each transport. It checks that what arrives is
complete, not every byte. rc_mlx5 (rc_x) builds its queues by DEVX, with a cyclic pool of receives (RMP)."""
import re

from harness import Bench, case, pair_problem, shell, tail

LISTED = ["rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5"]
TRANSPORTS = ["rc_v", "rc_x", "ud_v", "ud_x"]
TESTS = ["tag_lat", "tag_bw", "ucp_am_lat", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_fadd", "ucp_cswap"]
QUICK = ["tag_lat", "ucp_put_lat", "ucp_fadd"]


def run(quick, preset):
    with Bench(preset) as bench:
        bench.stack = "system"
        bench.env.update(UCX_NET_DEVICES="mlx5_0:1", UCX_WARN_UNUSED_ENV_VARS="n")
        listing = bench.run(["ucx_info", "-d"], seconds=30)
        for name in LISTED:
            found = re.search(rf"Transport: {name}$", listing.output, re.M)
            yield case(f"ucx_info -d lists {name}", "" if found else tail(listing.output), 0)
        for transport in TRANSPORTS:
            bench.env["UCX_TLS"] = transport
            for test in QUICK if quick else TESTS:
                for size in (8,) if "fadd" in test or "cswap" in test or quick else (8, 4096, 1 << 20):
                    server = ["ucx_perftest", "-p", "{port}"]
                    client = [*server, "localhost", "-t", test, "-s", str(size), "-n", "200", "-w", "10", "-f"]
                    ends = bench.pair(server, client, seconds=40)
                    yield case(f"{transport} {test} {size}", pair_problem(*ends), ends[1].seconds,
                               f"UCX_TLS={transport} " + shell(client))

"""Open MPI (Debian's) over UCX, restricted to the transports of the virtual node: four processes that check the results
of a ring, collective operations and one-sided access (tests/peers/mpi_job.c)."""
from harness import Bench, case, shell, tail

TRANSPORTS = ["rc_v", "rc_x", "ud_v", "ud_x"]
PARTS = ["ring", "collectives", "put and get", "atomics"]
MCA = {"pml": "ucx", "osc": "ucx", "btl": "^openib,ofi", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def job(bench, most, processes=4, **options):
    argv = ["mpirun", "-np", str(processes), "--oversubscribe"]
    for name, value in MCA.items():
        argv += ["--mca", name, value]
    argv += [str(bench.build / "bin" / "peers" / "peer_mpi_job"), str(most)]
    return bench.run(argv, seconds=90, **options)


def run(quick, preset):
    with Bench(preset) as bench:
        bench.stack = "system"
        bench.env.update(AS_ROOT, UCX_NET_DEVICES="mlx5_0:1")
        for transport in TRANSPORTS[:2] if quick else TRANSPORTS:
            bench.env["UCX_TLS"] = transport + ",self"
            end = job(bench, 1 << 18 if quick else 4 << 20)
            for part in PARTS:
                good = end.code == 0 and f"{part}: good" in end.output
                yield case(f"{transport} {part}", "" if good else f"{end.ending()}: {tail(end.output)}", end.seconds,
                           f"UCX_TLS={transport},self " + shell(end.argv))

"""Our libraries against those of the distribution, request for request: a program we did not write runs under either, on
the same device, and what it asks of the kernel is recorded and compared (request_record.py). UCX and what stands on it make
their requests in an order, and as often, as threads and time have it: there the sorts of requests are compared.

A difference is a bug of ours, or stands in differences.toml with its reason; one that stands there and no longer occurs
fails the suite too.
"""
import os
import pathlib
import shutil
import tomllib

import request_record
import suite_dpdk
import suite_mpi
import suite_pyverbs
import suite_ucx
from harness import ROOT, Bench, case, pair_problem, shell, tail

TABLE = pathlib.Path(__file__).with_name("differences.toml")
SHOWN = 6  # differences of one program in its reason; the record has all

# (program and options, in the quick subset)
SINGLE = [
    (["ibv_devinfo", "-v"], True),
    (["timeout", "5", "ibv_asyncwatch"], False),
]
ENDS = {"timeout": 124}  # where success is not 0
# The same of DPDK's drivers (device class, part), which say what they lack and stop. Its network driver needs flow actions
# that our libraries do not have: docs/fidelity.md.
DRIVERS = [(kind, part, kind == "crypto") for kind, part, _ in suite_dpdk.OTHERS]
UCX = {"UCX_NET_DEVICES": "mlx5_0:1", "UCX_WARN_UNUSED_ENV_VARS": "n"}
# UCX: tests of ucx_perftest, over each of its transports with and without DEVX.
TESTS = [
    (["-t", "tag_lat", "-s", "8", "-n", "100"], True),
    (["-t", "tag_bw", "-s", "1048576", "-n", "10"], False),
    (["-t", "ucp_put_bw", "-s", "4096", "-n", "100"], False),
    (["-t", "ucp_get", "-s", "65536", "-n", "20"], False),
    (["-t", "ucp_fadd", "-s", "8", "-n", "100"], False),
    (["-t", "ucp_am_bw", "-s", "8", "-n", "1000", "-T", "2", "-M", "multi"], False),
]
QUICK_TRANSPORTS = {("rc_v", "n"), ("rc_x", "y"), ("ud_x", "y")}
JOBS = [("rc_v", False), ("rc_x", True), ("ud_v", False), ("ud_x", False)]  # of Open MPI
PAIRS = [
    (["ibv_rc_pingpong", "-g", "3", "-n", "100"], True),
    (["ibv_rc_pingpong", "-g", "3", "-n", "100", "-e"], False),
    (["ibv_rc_pingpong", "-g", "3", "-n", "100", "-t"], False),
    (["ibv_uc_pingpong", "-g", "3", "-n", "100"], False),
    (["ibv_ud_pingpong", "-g", "3", "-n", "100", "-s", "1024"], True),
    (["ibv_srq_pingpong", "-g", "3", "-n", "100"], True),
    (["ibv_xsrq_pingpong", "-g", "3", "-n", "100"], False),
    (["ib_send_bw", "-F", "-n", "20"], False),
    (["ib_send_bw", "-F", "-n", "20", "-c", "UD"], True),
    (["ib_send_bw", "-F", "-n", "20", "-c", "UC", "-q", "4"], False),
    (["ib_send_bw", "-F", "-n", "20", "--use-srq"], False),
    (["ib_send_bw", "-F", "-n", "20", "-c", "XRC"], False),
    (["ib_send_lat", "-F", "-n", "20", "-e"], True),
    (["ib_write_bw", "-F", "-n", "20", "-q", "20"], False),
    (["ib_write_bw", "-F", "-n", "20", "--use_old_post_send"], False),
    (["ib_write_lat", "-F", "-n", "20", "-I", "64"], False),
    (["ib_read_bw", "-F", "-n", "20", "--mr_per_qp", "-q", "4"], False),
    (["ib_atomic_bw", "-F", "-n", "20"], False),
    (["ib_atomic_lat", "-F", "-n", "20", "-A", "CMP_AND_SWAP", "-e"], True),
]
# Modules of pyverbs' tests; every case is compared by itself.
QUICK_MODULES = {"test_pd", "test_addr", "test_qpex", "test_mlx5_udp_sport"}
MODULES = {name: name in QUICK_MODULES for name in suite_pyverbs.REQUIRED}


class Runs:
    """Runs programs under one library after the other and compares."""

    def __init__(self, bench, stacks):
        self.bench, self.stacks = bench, stacks
        self.table = tomllib.loads(TABLE.read_text())["difference"]
        self.used = []
        self.seconds = 0

    def use(self, stack):
        """From now on programs run under that library, on a NIC that nobody has used: the numbers it gives are the same."""
        self.bench.stack = stack
        machine = os.path.join(self.bench.run_dir, "machine")
        shutil.rmtree(machine, ignore_errors=True)
        os.mkdir(machine)
        self.bench.env["VERBENA_RUN_DIR"] = machine

    def record(self, name, stack, part=""):
        plain = "".join(c if c.isalnum() else "-" for c in name)
        path = self.bench.build / "records" / f"{plain}{part}.{stack}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        return path

    def single(self, argv, good=0, name="", settings=None):
        name, paths = name or shell(argv), {}
        self.seconds = 0
        for stack in (*self.stacks, "system"):
            paths[stack] = self.record(name, stack)
            self.use(stack)
            end = self.bench.run(argv, seconds=30, record=paths[stack], env=settings)
            self.seconds += end.seconds
            if end.code != good:
                yield case(f"{name} ({stack})", f"{end.ending()}: {tail(end.output)}", end.seconds)
                return
        yield from self.compare(name, paths)

    def pair(self, argv):
        name, paths = shell(argv), {}
        self.seconds = 0
        for stack in (*self.stacks, "system"):
            paths[stack] = [self.record(name, stack, part) for part in ("-server", "-client")]
            self.use(stack)
            ported = [*argv, "-p", "{port}"]
            ends = self.bench.pair(ported, [*ported, "localhost"], records=paths[stack])
            self.seconds += ends[1].seconds
            if problem := pair_problem(*ends):
                yield case(f"{name} ({stack})", problem, ends[1].seconds)
                return
        for i, part in enumerate(("server", "client")):
            yield from self.compare(f"{name}, {part}", {stack: path[i] for stack, path in paths.items()})

    def module(self, folder, name):
        paths = {}
        self.seconds = 0
        driver = str(pathlib.Path(__file__).with_name("pyverbs_driver.py"))
        for stack in (*self.stacks, "system"):
            paths[stack] = self.record(name, stack)
            journal = paths[stack].with_suffix(".journal")
            journal.unlink(missing_ok=True)
            self.use(stack)
            end = self.bench.run([suite_pyverbs.PYTHON, driver, str(folder), name, str(journal)], seconds=120,
                                 record=paths[stack])
            self.seconds += end.seconds
            if end.code != 0:
                yield case(f"{name} ({stack})", end.ending(), end.seconds)
                return
        yield from self.compare(name, paths)

    def perftest(self, transport, devx, options):
        """ucx_perftest: the requests of server and client together."""
        settings = {"UCX_TLS": transport + ",self", "UCX_IB_MLX5_DEVX": devx, **UCX}
        server = ["ucx_perftest", "-p", "{port}"]
        client = [*server, "localhost", "-w", "5", "-f", *options]

        def run_it(path):
            ends = self.bench.pair(server, client, records=[path, path])
            return pair_problem(*ends), ends[1].seconds

        name = f"ucx_perftest {transport} {'devx ' if devx == 'y' else ''}{shell(options)}"
        yield from self.sorts(name, settings, run_it)

    def job(self, transport):
        """Open MPI: the requests of all its processes."""
        settings = {"UCX_TLS": transport + ",self", **UCX, **suite_mpi.AS_ROOT}

        def run_it(path):
            end = suite_mpi.job(self.bench, 1 << 18, record=path)
            return "" if end.code == 0 else f"{end.ending()}: {tail(end.output)}", end.seconds

        yield from self.sorts(f"mpirun {transport}", settings, run_it)

    def sorts(self, name, settings, run_it):
        """Compares which sorts of requests are made in `run_it`, which gets the path of the record and returns problem
        and seconds."""
        paths, usual = {}, dict(self.bench.env)
        self.seconds = 0
        for stack in (*self.stacks, "system"):
            paths[stack] = self.record(name, stack)
            self.use(stack)
            self.bench.env.update(settings)
            problem, seconds = run_it(paths[stack])
            self.bench.env = dict(usual)
            self.seconds += seconds
            if problem:
                yield case(f"{name} ({stack})", problem, seconds)
                return
        theirs = request_record.read(paths["system"])
        for stack in self.stacks:
            found = request_record.sorts_differences(request_record.read(paths[stack]), theirs)
            yield self.judged(name, stack, {"": found}, paths, len(theirs))

    def compare(self, name, paths):
        theirs = request_record.read(paths["system"])
        for stack in self.stacks:
            found = request_record.differences(request_record.read(paths[stack]), theirs)
            yield self.judged(name, stack, found, paths, len(theirs))

    def judged(self, name, stack, found, paths, issued):
        problem = self.judge(name, found) if issued > 1 else "the other library issued nothing"
        return case(f"{name} ({stack})", problem, self.seconds, f"diff {paths[stack]} {paths['system']}")

    def judge(self, name, found):
        """What is not explained, as one line."""
        problems = []
        for test, lines in found.items():
            unexplained, used = request_record.explain(lines, self.table, test or name)
            self.used += used
            problems += [f"{test}: {line}" if test else line for line in unexplained]
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        return " | ".join(problems[:SHOWN] + more)

    def stale(self):
        for entry in self.table:
            problem = "" if entry in self.used else "it no longer occurs: take it out of differences.toml"
            yield case("explained: " + entry["what"], problem, 0)


def on_node(runs, quick):
    """Programs that look for devices in sysfs themselves, and find them on the virtual node alone."""
    runs.stacks = ["kernel"]
    yield from runs.single(["ucx_info", "-d"])
    for kind, part, short in DRIVERS:
        name = f"{suite_dpdk.PERF} class={kind}"
        if shutil.which(suite_dpdk.PERF) is None:
            yield case(name, "skip: the package dpdk-dev is not installed", 0)
        elif short or not quick:
            yield from runs.single(suite_dpdk.probe(kind), 1, name, suite_dpdk.profile(runs.bench, part))
    for transport, devx in suite_ucx.TRANSPORTS + suite_ucx.WITHOUT_DEVX:
        for options, short in TESTS:
            if not quick or (short and (transport, devx) in QUICK_TRANSPORTS):
                yield from runs.perftest(transport, devx, options)
    for transport, short in JOBS:
        if short or not quick:
            yield from runs.job(transport)


def run(quick, preset):
    with Bench(preset) as bench:
        runs = Runs(bench, ["own"] if quick else ["own", "kernel"])
        for argv, short in SINGLE:
            if short or not quick:
                yield from runs.single(argv, ENDS.get(argv[0], 0))
        for argv, short in PAIRS:
            if short or not quick:
                yield from runs.pair(argv)
        folder = suite_pyverbs.unpack(ROOT / "build" / "pyverbs-tests-differential" / "tests")
        for module, short in MODULES.items():
            if short or not quick:
                yield from runs.module(folder, module)
        yield from on_node(runs, quick)
        if not quick:
            yield from runs.stale()

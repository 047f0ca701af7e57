"""Our libraries against those of the distribution, request for request: a program we did not write runs under either, on
the same device, and what it asks of the kernel is recorded and compared (request_record.py).

A difference is a bug of ours, or stands in differences.toml with its reason; one that stands there and no longer occurs
fails the suite too.
"""
import os
import pathlib
import shutil
import tomllib

import request_record
import suite_pyverbs
from harness import ROOT, Bench, case, pair_problem, shell

TABLE = pathlib.Path(__file__).with_name("differences.toml")
SHOWN = 6  # differences of one program in its reason; the record has all

# (program and options, in the quick subset). UCX looks for devices in sysfs itself and finds them on a node alone.
SINGLE = [
    (["ibv_devinfo", "-v"], True),
    (["timeout", "5", "ibv_asyncwatch"], False),
    (["ucx_info", "-d"], False),
]
ON_NODE_ALONE = {"ucx_info"}
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

    def single(self, argv):
        name, paths = shell(argv), {}
        self.seconds = 0
        for stack in (*self.stacks, "system"):
            if stack == "own" and argv[0] in ON_NODE_ALONE:
                continue
            paths[stack] = self.record(name, stack)
            self.use(stack)
            end = self.bench.run(argv, seconds=30, record=paths[stack])
            self.seconds += end.seconds
            if end.code != (124 if argv[0] == "timeout" else 0):
                yield case(f"{name} ({stack})", end.ending(), end.seconds)
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

    def compare(self, name, paths):
        theirs = request_record.read(paths["system"])
        for stack in (s for s in self.stacks if s in paths):
            found = request_record.differences(request_record.read(paths[stack]), theirs)
            problem = self.judge(name, found) if len(theirs) > 1 else "the other library issued nothing"
            yield case(f"{name} ({stack})", problem, self.seconds, f"diff {paths[stack]} {paths['system']}")

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


def run(quick, preset):
    with Bench(preset) as bench:
        runs = Runs(bench, ["own"] if quick else ["own", "kernel"])
        for argv, short in SINGLE:
            if short or not quick:
                yield from runs.single(argv)
        for argv, short in PAIRS:
            if short or not quick:
                yield from runs.pair(argv)
        folder = suite_pyverbs.unpack(ROOT / "build" / "pyverbs-tests-differential" / "tests")
        for module, short in MODULES.items():
            if short or not quick:
                yield from runs.module(folder, module)
        if not quick:
            yield from runs.stale()

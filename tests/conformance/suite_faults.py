"""Processes that die, stop, sleep, spin and fork (tests/faults), and that shared resources come back afterwards."""
import pathlib

from harness import Bench, case, shell, tail

CASES = [
    # (name, command, seconds, quick)
    ("kill -9 of the target", ["fault_kill", "target"], 40, True),
    ("kill -9 of the requester", ["fault_kill", "requester"], 40, True),
    ("kill -9 at random moments", ["fault_kill", "rounds", "20"], 120, False),
    ("one-sided, target stopped", ["fault_passive", "stopped"], 60, True),
    ("one-sided, target sleeping", ["fault_passive", "sleeping"], 60, True),
    ("one-sided, target spinning", ["fault_passive", "spinning"], 60, True),
    ("one-sided, memory guarded", ["fault_passive", "guarded"], 60, True),
    ("10 processes at once", ["fault_many", "10"], 60, True),
    ("100 processes at once", ["fault_many", "100"], 240, False),
    ("fork after ibv_fork_init", ["fault_fork", "init"], 60, True),
    ("fork without ibv_fork_init", ["fault_fork", "plain"], 60, True),
]


def slices(run_dir):
    return list(pathlib.Path(run_dir).rglob("slice-*"))


def run(quick, preset):
    with Bench(preset) as bench:
        for name, command, seconds, short in CASES:
            if quick and not short:
                continue
            argv = [str(bench.build / "bin" / "faults" / command[0]), *command[1:]]
            end = bench.run(argv, seconds)
            problem = ""
            if end.code == 77:
                problem = "skip: " + tail(end.output, 1).removeprefix("skip: ")
            elif end.code != 0:
                problem = f"{end.ending()}: {tail(end.output, 3)}"
            yield case(name, problem, end.seconds, shell(["verbena", "run", "--", *command]))
        # Whoever comes next may take what the dead have left; the files must not grow with every death.
        before = len(slices(bench.run_dir))
        for _ in range(3):
            bench.run([str(bench.build / "bin" / "faults" / "fault_kill"), "target"], 40)
        after = len(slices(bench.run_dir))
        problem = f"slices grew from {before} to {after}" if after > before else ""
        yield case("slices of the dead are used again", problem, 0)

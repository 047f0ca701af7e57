"""Conformance suites: programs we did not write, judged on the emulated NIC.

run.py [--quick | --ci] [--preset NAME] [--stack own|system|kernel] [--newer] [--update-baseline] [SUITE...]

Prints every failure with the command that shows it, one line of counts a suite, and leaves build/results/SUITE.json.
Exits 1 if a case fails or if fewer pass than tests/conformance/baseline/SUITE.json says.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import suite_differential
import suite_dpdk
import suite_ethernet
import suite_faults
import suite_host
import suite_mpi
import suite_perftest
import suite_pyverbs
import suite_tools
import suite_ucx
import suite_unprivileged
import suite_utils
from harness import Bench

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import counts  # noqa: E402

BASELINES = pathlib.Path(__file__).with_name("baseline")
SUITES = {
    "host": suite_host.run,
    "utils": suite_utils.run,
    "perftest": suite_perftest.run,
    "ethernet": suite_ethernet.run,
    "pyverbs": suite_pyverbs.run,
    "pyverbs-other": suite_pyverbs.run_other,
    "devx": suite_pyverbs.run_devx,
    "faults": suite_faults.run,
    "tools": suite_tools.run,
    "ucx": suite_ucx.run,
    "mpi": suite_mpi.run,
    "dpdk": suite_dpdk.run,
    "differential": suite_differential.run,
    "unprivileged": suite_unprivileged.run,
}
# The same programs on the virtual node: NAME-system with the libraries of the system, NAME-kernel with our own, which
# take the node for a kernel's.
ON_NODE = {f"{name}-{stack}": SUITES[name] for stack in ("system", "kernel")
           for name in ("utils", "perftest", "ethernet", "pyverbs", "devx")}
ALL = SUITES | ON_NODE
# The same on a newer Debian, whose programs and libraries these are: newer.sh runs this file inside it.
NEWER = {
    "utils-newer": suite_utils.run,
    "perftest-newer": suite_perftest.run,
    "pyverbs-newer": suite_pyverbs.run_newer,
    "pyverbs-newer-kernel": suite_pyverbs.run_newer,  # our own libraries, on the node
}
FOR_THE_RECORD = {"pyverbs-other"}  # failures there are listed but do not fail the run
# In CI the whole of a suite that takes long is replaced by its subset.
CI_QUICK = {"utils", "ucx", "differential", "mpi", "dpdk", "unprivileged"} | set(ON_NODE)


def versions():
    """Of the Debian packages that the programs come from."""
    packages = "rdma-core perftest python3-pyverbs python3 libc6".split()
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages], capture_output=True, text=True)
    return "With " + ", ".join(shown.stdout.splitlines()) + "."


def run_suite(name, mode, preset):
    started = time.monotonic()
    cases = []
    Bench.stack = "system" if name.endswith("-newer") else name.rpartition("-")[2] if name in ON_NODE | NEWER else "own"
    for case in (ALL | NEWER)[name](mode == "quick", preset):
        cases.append(case)
        if case["status"] == "failed" and name not in FOR_THE_RECORD:
            print(f"  failed: {case['name']}: {case['reason']}", flush=True)
            if case.get("command"):
                print(f"          {case['command']}", flush=True)
    if not cases:
        return True
    sums = counts.counts(cases)
    label = name if preset == "dev" else f"{name}-{preset}"
    counts.save(label, mode, cases, for_the_record=name in FOR_THE_RECORD, note=versions() if name in NEWER else "")
    print(f"{label} ({mode}): {counts.line(sums)} in {time.monotonic() - started:.0f} s", flush=True)
    return not sums["failed"] or name in FOR_THE_RECORD


def below_baseline(name, mode):
    """Complains about fewer passes than the baseline has for this mode."""
    try:
        least = json.loads((BASELINES / f"{name}.json").read_text()).get(mode)
        now = json.loads((counts.RESULTS / f"{name}.json").read_text())
    except OSError:
        return False
    passed = counts.counts(now["cases"])["passed"]
    if least is not None and now["mode"] == mode and passed < least:
        print(f"  {name} ({mode}): {passed} passed, the baseline is {least}")
        return True
    return False


def update_baseline(name, mode):
    path = BASELINES / f"{name}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    result = json.loads((counts.RESULTS / f"{name}.json").read_text())
    known[mode] = counts.counts(result["cases"])["passed"]
    BASELINES.mkdir(exist_ok=True)
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="./dev conformance")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=" ".join(ALL))
    parser.add_argument("--quick", action="store_true", help="the subset that ./dev test runs")
    parser.add_argument("--ci", action="store_true", help="full length, but the subset for: " + " ".join(CI_QUICK))
    parser.add_argument("--stack", choices=("own", "system", "kernel"), default="own",
                        help="the suites named are run with the libraries of the system, or our own, on a virtual node")
    parser.add_argument("--newer", action="store_true",
                        help="the programs and libraries of a newer Debian (needs root): " + " ".join(NEWER))
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--update-baseline", action="store_true")
    arguments = parser.parse_args()
    available = NEWER if arguments.newer else ALL
    if arguments.newer:
        arguments.suites = [s if "-newer" in s else s + "-newer" for s in arguments.suites]
    if arguments.stack != "own":
        ending = "-" + arguments.stack
        named = [s if s in ON_NODE else s + ending for s in arguments.suites]
        arguments.suites = named or [s for s in ON_NODE if s.endswith(ending)]
    unknown = [s for s in arguments.suites if s not in available]
    if unknown:
        parser.error(f"no such suite: {unknown[0]} (there are: {' '.join(available)})")
    good = True
    print(f"\n== conformance ({arguments.preset})", flush=True)
    for name in arguments.suites or available:
        mode = "quick" if arguments.quick or (arguments.ci and name in CI_QUICK) else "full"
        good = run_suite(name, mode, arguments.preset) and good
        if arguments.preset == "dev":
            if arguments.update_baseline:
                update_baseline(name, mode)
            good = not below_baseline(name, mode) and good
    if not arguments.quick and arguments.preset == "dev":
        import report
        report.write()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Results on disk and their sums.

Every suite leaves build/results/NAME.json: {"suite", "mode", "cases": [{"name", "status", "seconds", "reason"}]}
with status one of passed, failed, skipped.

  counts.py junit FILE NAME   turn ctest's JUnit file into such a result and print its counts
  counts.py total             print one line a suite and, last, the sum; exit 1 if anything failed
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"


def counts(cases):
    sums = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        sums[case["status"]] += 1
    return sums


def line(sums):
    return "{passed} passed, {failed} failed, {skipped} skipped".format(**sums)


def save(suite, mode, cases, for_the_record=False, note=""):
    """`note`: what the table of results says before it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    result = {"suite": suite, "mode": mode, "for_the_record": for_the_record, "cases": cases}
    if note:
        result["note"] = note
    text = json.dumps(result, indent=1)
    (RESULTS / f"{suite}.json").write_text(text + "\n")


def load_all():
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def from_junit(path, name):
    cases = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        state = case.get("status", "")
        status = "passed" if state == "run" else "skipped" if state in ("notrun", "disabled") else "failed"
        if case.find("skipped") is not None:
            status = "skipped"
        cases.append({"name": case.get("name"), "status": status, "seconds": float(case.get("time", 0)), "reason": ""})
    save(name, "full", cases)
    for case in cases:
        if case["status"] == "failed":
            print(f"  failed: {case['name']}")
    print(f"{name}: {line(counts(cases))}")
    return 0 if cases else 1


def total():
    grand = {"passed": 0, "failed": 0, "skipped": 0}
    print("\n== counts")
    for result in load_all():
        sums = counts(result["cases"])
        note = "  (for the record, not in the sum)" if result.get("for_the_record") else ""
        print(f"{result['suite'] + ' (' + result['mode'] + ')':30} {line(sums)}{note}")
        for key in grand if not note else ():
            grand[key] += sums[key]
    print(line(grand))
    return 1 if grand["failed"] or not grand["passed"] else 0


def main(arguments):
    if arguments[:1] == ["junit"] and len(arguments) == 3:
        return from_junit(pathlib.Path(arguments[1]), arguments[2])
    if arguments == ["total"]:
        return total()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

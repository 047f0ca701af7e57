"""Writes docs/conformance.md from build/results: `./dev docs`."""
import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import counts  # noqa: E402

PAGE = ROOT / "docs" / "conformance.md"
TITLES = {
    "host": "The verbena command and captures",
    "utils": "ibverbs-utils", "perftest": "perftest",
    "ethernet": "perftest, raw Ethernet", "pyverbs": "pyverbs, required modules",
    "devx": "pyverbs, DEVX and what stands on it (no case may be skipped)",
    "pyverbs-other": "pyverbs, all other modules (for the record)", "faults": "Faults",
    "tools": "Tools that list RDMA devices, with the libraries of the system",
    "ucx": "UCX",
    "mpi": "Open MPI over UCX",
    "dpdk": "DPDK",
    "differential": "Requests of our libraries against those of the system's, program by program",
    "unprivileged": "ibverbs-utils without any rights, on a read-only root",
    "utils-system": "ibverbs-utils with the system's libibverbs and libmlx5",
    "perftest-system": "perftest with the system's libibverbs and libmlx5",
    "ethernet-system": "perftest, raw Ethernet, with the system's libibverbs and libmlx5",
    "pyverbs-system": "pyverbs with the system's libibverbs and libmlx5",
    "devx-system": "pyverbs, DEVX and what stands on it, with the system's libibverbs and libmlx5",
    "utils-kernel": "ibverbs-utils with our libraries on the virtual node",
    "perftest-kernel": "perftest with our libraries on the virtual node",
    "ethernet-kernel": "perftest, raw Ethernet, with our libraries on the virtual node",
    "pyverbs-kernel": "pyverbs with our libraries on the virtual node",
    "devx-kernel": "pyverbs, DEVX and what stands on it, with our libraries on the virtual node",
    "utils-newer": "ibverbs-utils of a newer Debian, with its libibverbs and libmlx5",
    "perftest-newer": "perftest of a newer Debian, with its libibverbs and libmlx5",
    "pyverbs-newer": "pyverbs of a newer Debian, with its libibverbs and libmlx5",
    "pyverbs-newer-kernel": "pyverbs of a newer Debian, with our libraries on the virtual node",
}
HEAD = """# Conformance

What programs that we did not write make of the emulated NIC. Written by `./dev conformance` (`./dev docs` writes it
again from the last results); suites and their commands are in tests/conformance, the least counts CI accepts in
tests/conformance/baseline.

"""


def group_of(suite, name):
    if suite.startswith(("pyverbs", "devx")):
        return name.split(".")[0].split(" ")[0]
    return name.split(" ")[0]


def table(suite, cases):
    groups = collections.OrderedDict()
    for case in cases:
        groups.setdefault(group_of(suite, case["name"]), []).append(case)
    yield "| what | passed | failed | skipped |"
    yield "|---|---:|---:|---:|"
    for name, members in groups.items():
        sums = counts.counts(members)
        yield f"| {name} | {sums['passed']} | {sums['failed']} | {sums['skipped']} |"


def remarks(cases):
    """Failures and skips, equal reasons together."""
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        reasons = collections.OrderedDict()
        for case in cases:
            if case["status"] == status:
                why = case["reason"].replace("|", "/").strip()[:160].rstrip() or "no reason given"
                if case.get("why"):
                    why += f" ({case['why']})"
                reasons.setdefault(why, []).append(case["name"].split(".")[-1] if "." in case["name"] else case["name"])
        if reasons:
            yield ""
            yield f"{title}:"
            yield ""
            for why, names in reasons.items():
                yield f"* {', '.join(names)}: {why}"


def row_of(result):
    sums = counts.counts(result["cases"])
    return f"| {TITLES[result['suite']]} | {sums['passed']} | {sums['failed']} | {sums['skipped']} |"


def section_of(result):
    lines = [f"## {TITLES[result['suite']]}", ""]
    if result["mode"] != "full":
        lines += [f"Last run: {result['mode']}.", ""]
    if result.get("note"):
        lines += [result["note"], ""]
    lines += table(result["suite"], result["cases"])
    lines += remarks(result["cases"])
    return "\n".join(lines)


def sections_before():
    """title -> (its row in the table of suites, its section), as the page has them now."""
    head, *sections = PAGE.read_text().split("\n## ") if PAGE.exists() else [""]
    rows = {line[2:].split(" | ")[0]: line for line in head.splitlines() if line.startswith("| ")}
    titles = {text.split("\n", 1)[0]: "## " + text.strip() for text in sections}
    return {title: (rows[title], text) for title, text in titles.items() if title in rows}


def page(results):
    """Suites that have not been run here keep what the page says of them."""
    before = sections_before()
    shown = []
    for suite, title in TITLES.items():
        if suite in results:
            shown.append((row_of(results[suite]), section_of(results[suite])))
        elif title in before:
            shown.append(before[title])
    lines = [HEAD.rstrip(), "", "| suite | passed | failed | skipped |", "|---|---:|---:|---:|"]
    lines += [row for row, _ in shown]
    for _, section in shown:
        lines += ["", section]
    return "\n".join(lines) + "\n"


def write():
    results = {r["suite"]: r for r in counts.load_all() if r["suite"] in TITLES}
    if not results:
        print("no results: run ./dev conformance first", file=sys.stderr)
        return 1
    PAGE.write_text(page(results))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(write())

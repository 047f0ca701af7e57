"""Runs every libFuzzer harness for a while: run.py [SECONDS] [HARNESS...]

Each harness starts from its corpus (tests/fuzz/corpus/HARNESS, read only here) with a fixed seed. A crash, a sanitizer
finding, an input of more than 10 s or memory beyond 2 GiB is a failure; the input is kept in build/results/fuzz and its
path printed. To see it again: build/fuzz/bin/fuzz_HARNESS PATH. To renew a corpus from inputs FOUND by a longer run:
build/fuzz/bin/fuzz_HARNESS -set_cover_merge=1 NEW FOUND OLD.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import counts  # noqa: E402

HARNESSES = ("mailbox", "wqe", "packet", "uverbs")
SEED = "20260101"
TIMEOUT = "10"
MEMORY_MB = "2048"


def run(harness, seconds):
    binary = ROOT / "build" / "fuzz" / "bin" / f"fuzz_{harness}"
    findings = ROOT / "build" / "results" / "fuzz"
    findings.mkdir(parents=True, exist_ok=True)
    for old in findings.glob(f"{harness}-*"):
        old.unlink()
    log_path = findings / f"{harness}.log"
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, open(log_path, "wb") as log:
        # New inputs go to the first folder: the kept corpus stays small.
        corpus = ROOT / "tests" / "fuzz" / "corpus" / harness
        command = [str(binary), scratch, str(corpus), f"-seed={SEED}", f"-max_total_time={seconds}",
                   f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY_MB}", "-max_len=4096", "-print_final_stats=1",
                   f"-artifact_prefix={findings}/{harness}-"]
        environment = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1", TMPDIR=scratch)
        try:
            code = subprocess.run(command, stdout=log, stderr=log, env=environment,
                                  timeout=seconds * 2 + 120).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            code, message = 1, str(error)
            log.write(message.encode())
    text = log_path.read_text(errors="replace")
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    coverage = re.findall(r"cov: (\d+)", text)
    kept = sorted(str(p) for p in findings.glob(f"{harness}-*"))
    took = time.monotonic() - start
    detail = f"{executed[-1] if executed else 0} inputs, {coverage[-1] if coverage else 0} edges, {took:.0f} s"
    ok = code == 0 and bool(executed)
    print(f"  {harness}: {detail}" + ("" if ok else f"; FAILED, see {log_path}"), flush=True)
    for path in kept:
        print(f"  {harness}: input kept at {path}", flush=True)
    if not ok:
        summary = re.findall(r"^(?:SUMMARY|.*runtime error|==\d+==ERROR).*$", text, re.MULTILINE)
        for line in summary[:4]:
            print("    " + line)
    return {"name": harness, "status": "passed" if ok else "failed", "seconds": took,
            "reason": detail if ok else f"{detail}; {' '.join(kept)}"}


def main(arguments):
    seconds = 60
    if arguments and arguments[0].isdigit():
        seconds = int(arguments.pop(0))
    wrong = [name for name in arguments if name not in HARNESSES]
    if wrong or seconds == 0:
        print(f"run.py [SECONDS] [{' | '.join(HARNESSES)}]", file=sys.stderr)
        return 2
    # A harness that was killed leaves its run dir.
    for stale in pathlib.Path("/dev/shm").glob("verbena-fuzz-*"):
        if stale.stat().st_uid == os.getuid() and time.time() - stale.stat().st_mtime > 3600:
            shutil.rmtree(stale, ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        cases = list(pool.map(lambda harness: run(harness, seconds), arguments or HARNESSES))
    counts.save("fuzz", f"{seconds}s", cases)
    sums = counts.counts(cases)
    print(f"fuzz: {counts.line(sums)}")
    return 1 if sums["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs unmodified programs on the emulated NIC, alone or as server and client, always with a time limit.

Every process is started through `verbena run` in a session of its own and ended by that session's id. A Bench has its
own run directory (the "machine" its virtual hosts share), removed at the end.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A machine that is busy with other things needs more patience; the limits below are for an idle one.
PATIENCE = float(os.environ.get("VERBENA_TEST_PATIENCE", "1"))
SANITIZER_LIBRARY = {"asan-ubsan": "libasan.so", "tsan": "libtsan.so"}
SANITIZED_PATIENCE = 4  # instrumented code is that much slower


class Finished:
    """How a process ended: `code` is its exit status (negative: signal; None: it ran out of time)."""

    def __init__(self, argv, code, output, seconds):
        self.argv, self.code, self.output, self.seconds = argv, code, output, seconds

    def ending(self):
        if self.code is None:
            return "ran out of time"
        if self.code < 0:
            return f"died of signal {-self.code}"
        return f"exit {self.code}"


class Process:
    before_exec = None  # called in every child before its program starts

    def __init__(self, argv, env):
        self.argv = argv
        self.started = time.monotonic()
        self.log = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
                                      env=env, start_new_session=True, preexec_fn=Process.before_exec)

    def kill(self, signum=signal.SIGKILL):
        try:
            os.killpg(self.popen.pid, signum)
        except ProcessLookupError:
            pass

    def alive(self):
        return self.popen.poll() is None

    def says(self, text, seconds):
        """Waits until the process has written that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.alive():
            if text.encode() in os.pread(self.log.fileno(), 1 << 20, 0):
                return True
            time.sleep(0.05)
        return False

    def wait(self, seconds):
        """The end of the process, which is killed if it has not come after `seconds`."""
        code = None
        try:
            code = self.popen.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            pass
        self.kill()  # also what it may have left behind in its session
        self.popen.wait(10)
        self.log.seek(0)
        output = self.log.read().decode(errors="replace")
        self.log.close()
        return Finished(self.argv, code, output, time.monotonic() - self.started)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening(port):
    """Whether some process listens on TCP `port` (state 0A of /proc/net/tcp)."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = pathlib.Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and fields[1].endswith(wanted):
                return True
    return False


class Bench:
    stack = "own"  # whose libibverbs and libmlx5 programs run with

    def __init__(self, preset="dev"):
        self.build = ROOT / "build" / preset
        self.slower = SANITIZED_PATIENCE if preset in SANITIZER_LIBRARY else 1
        self.patience = PATIENCE * self.slower
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.run_dir = tempfile.mkdtemp(prefix="verbena-test-", dir=base)
        os.chmod(self.run_dir, 0o777)
        self.env = dict(os.environ, VERBENA_RUN_DIR=self.run_dir, VERBENA_MODE="embedded")
        for name in ("VERBENA_HOST", "VERBENA_DEVICES", "VERBENA_PROFILE", "VERBENA_CAPTURE"):
            self.env.pop(name, None)
        if preset in SANITIZER_LIBRARY:
            library = subprocess.run(["gcc", f"-print-file-name={SANITIZER_LIBRARY[preset]}"], capture_output=True,
                                     text=True, check=True).stdout.strip()
            self.env["LD_PRELOAD"] = library
            # Programs that end by a signal or by _exit() owe nobody their memory; the unit tests look for leaks.
            self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0:verify_asan_link_order=0"
        if preset == "tsan":  # a report is longer than what the table has of a program's output
            reports = self.build / "reports"
            reports.mkdir(exist_ok=True)
            self.env["TSAN_OPTIONS"] = self.env.get("TSAN_OPTIONS", "") + f":log_path={reports}/tsan:log_exe_name=1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.run_dir, ignore_errors=True)

    def command(self, argv, host=None, devices=None, capture=None, record=None):
        options = [] if self.stack == "own" else ["--stack", self.stack]
        for name, value in (("--host", host), ("--devices", devices), ("--capture", capture), ("--record", record)):
            if value:
                options += [name, str(value)]
        return [str(self.build / "bin" / "verbena"), "run", *options, "--", *argv]

    def start(self, argv, env=None, **run_options):
        return Process(self.command(argv, **run_options), dict(self.env, **(env or {})))

    def run(self, argv, seconds=60, **options):
        return self.start(argv, **options).wait(seconds * self.patience)

    def pair(self, server, client, seconds=60, hosts=(None, None), devices=None, capture=None, records=(None, None)):
        """Runs server, and client once the server listens. "{port}" in either is a free TCP port.
        Returns (server's end, client's end)."""
        port = free_port()
        server, client = ([word.replace("{port}", str(port)) for word in argv] for argv in (server, client))
        first = self.start(server, host=hosts[0], devices=devices, capture=capture, record=records[0])
        deadline = time.monotonic() + seconds * self.patience
        while first.alive() and not listening(port) and time.monotonic() < deadline:
            time.sleep(0.01)
        second = self.start(client, host=hosts[1], devices=devices, capture=capture, record=records[1])
        # One that dies leaves the other waiting for ever: then there is nothing to wait for but a moment of grace.
        while time.monotonic() < deadline and (first.alive() or second.alive()):
            broken = [p.popen.poll() for p in (first, second) if not p.alive()]
            if any(code != 0 for code in broken):
                deadline = min(deadline, time.monotonic() + 5)
            time.sleep(0.02)
        return first.wait(0.1), second.wait(0.1)


def case(name, problem, seconds, command=""):
    """One result. `problem`: empty if all is well; "skip: ..." if the case does not apply."""
    if not problem:
        return {"name": name, "status": "passed", "seconds": round(seconds, 2), "reason": ""}
    status = "skipped" if problem.startswith("skip: ") else "failed"
    result = {"name": name, "status": status, "seconds": round(seconds, 2), "reason": problem.removeprefix("skip: ")}
    if command:
        result["command"] = command
    return result


def tail(text, lines=4):
    """What the end of an output says: lines that complain if there are any, else the last that say something."""
    kept = [line.strip() for line in text.splitlines() if re.search(r"[A-Za-z]", line)]
    complaints = [line for line in kept if re.search(r"(?i)fail|error|couldn't|unable|cannot|unexpected|invalid|skip", line)
                  and "#bytes" not in line]
    return " | ".join((complaints or kept)[-lines:])


def pair_problem(server, client):
    """Why a server/client run failed, or an empty string."""
    for who, end in (("server", server), ("client", client)):
        if end.code != 0:
            other = client if end is server else server
            text = f"{who} {end.ending()}: {tail(end.output)}"
            return text + (f" [other: {tail(other.output, 2)}]" if other.code != 0 else "")
    return ""


def shell(argv):
    return " ".join(shlex.quote(word) for word in argv)

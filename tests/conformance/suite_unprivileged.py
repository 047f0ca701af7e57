"""ibverbs-utils as in a locked-down container: nobody's rights, no capability and none to be had, a read-only root.

Two kinds of confinement, each with our own libraries, the system's on the virtual node, and our own on that node:

  nobody   another user than the owner of the files, and nothing writable but /dev/shm
  userns   an unprivileged user's namespace, and nothing writable but /tmp: the run directory lies there

The suite runs itself inside (`suite_unprivileged.py PRESET MODE`), which prints one JSON line a case.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import suite_utils  # noqa: E402
from harness import ROOT, Bench, case, tail  # noqa: E402

STACKS = ("own", "system", "kernel")
# In the repository; $1: where the one writable file system goes, $2: where an empty one does, the rest: what to run
# without rights. The parts of the repository that are needed are bound where nobody can look at them, too.
CONFINE = """
set -e
writable=$1 other=$2; shift 2
mount -t tmpfs -o mode=1777 tmpfs "$writable"
mkdir "$writable/verbena"
for part in build tests tools; do  # by relative names: where they lie may be covered by now
  mkdir "$writable/verbena/$part"
  mount --no-canonicalize --bind "$part" "$writable/verbena/$part"
  mount -o remount,bind,ro "$writable/verbena/$part"
done
mount -t tmpfs tmpfs "$other"
touch "$other/xrc_domain"  # ibv_xsrq_pingpong opens it in /tmp, and makes it where it can
chmod 444 "$other/xrc_domain"
mount -o remount,ro "$other"
mount -o remount,bind,ro /
cd "$writable/verbena"
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""
DEFAULT_FOLDER = "the run directory of a user who names none"


def rights():
    """What the process may do, as one problem line; empty if it is nothing."""
    status = pathlib.Path("/proc/self/status").read_text()
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    held = [name for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb") if int(found[name], 16)]
    if held or found["NoNewPrivs"] != "1":
        return f"capabilities left: {held}, no new privileges: {found['NoNewPrivs']}"
    writable = [f for f in ("/", "/usr", "/tmp", "/var/tmp", "/dev/shm") if os.access(f, os.W_OK)]
    return "" if writable == [os.environ["TMPDIR"]] else f"writable: {writable}"


def inside(preset, quick):
    yield case("nothing to write to, no rights", rights(), 0)
    for stack in STACKS[:2] if quick else STACKS:
        Bench.stack = stack
        with Bench(preset) as bench:
            for result in suite_utils.confined_cases(bench, quick):
                yield dict(result, name=f"{stack}: {result['name']}")
    Bench.stack = "own"
    if os.environ["TMPDIR"] == "/dev/shm":
        with Bench(preset) as bench:
            del bench.env["VERBENA_RUN_DIR"]
            result = suite_utils.pingpong(bench, "ibv_rc_pingpong", [], 4096, 1000)
            there = pathlib.Path(f"/dev/shm/verbena-{os.geteuid()}").is_dir()
            yield dict(result, name=DEFAULT_FOLDER) if there else case(DEFAULT_FOLDER, "it is not there", 0)


def confined(kind, namespace, identity, writable, preset, quick):
    """Runs the cases in a confinement and yields them as they come."""
    python = ["/usr/bin/python3", "tests/conformance/suite_unprivileged.py", preset, "quick" if quick else "full"]
    other = "/tmp" if writable == "/dev/shm" else "/dev/shm"
    argv = [*namespace, "sh", "-c", CONFINE, "sh", writable, other, *identity, *python]
    env = dict(os.environ, TMPDIR=writable, PYTHONDONTWRITEBYTECODE="1", HOME="/nonexistent")
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT,
                             start_new_session=True)
    count = 0
    try:
        for line in child.stdout:
            if line.startswith("{"):
                count += 1
                result = json.loads(line)
                yield dict(result, name=f"{kind}, {result['name']}")
        complaint = child.stderr.read()
        code = child.wait(30)
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if code or not count:
        yield case(f"{kind}, confinement", f"exit {code}: {tail(complaint)}", 0)


def run(quick, preset):
    nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.geteuid() == 0:
        yield from confined("nobody", ["unshare", "--mount"], nobody, "/dev/shm", preset, quick)
    else:
        yield case("nobody, confinement", "skip: only root can become another user", 0)
    yield from confined("userns", ["unshare", "--user", "--map-root-user", "--mount"], [], "/tmp", preset, quick)


if __name__ == "__main__":
    for entry in inside(sys.argv[1], sys.argv[2] == "quick"):
        print(json.dumps(entry), flush=True)

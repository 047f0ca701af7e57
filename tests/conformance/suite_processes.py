"""The virtual node and what processes do with descriptors, each other and themselves: dup, passing, exec, vfork, spawn,
libraries loaded for one module alone, programs with more rights than their caller."""
import os
import pathlib
import shutil
import subprocess

from harness import case, tail

PYTHON = "/usr/bin/python3"
OPENED = """
import ctypes, errno, fcntl, os, socket, stat, struct, subprocess, sys
import pyverbs.device as d
from pyverbs.pd import PD
from pyverbs.mr import MR
import pyverbs.enums as e
context = d.Context(name="mlx5_0")
pd = PD(context)
def still_works():
    MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE).close()
    PD(context).close()
def node():
    return os.open("/dev/infiniband/uverbs0", os.O_RDWR)
def is_node(fd):  # an undersized request is refused by the node (ENOSPC), and by anything else as no request at all
    try:
        fcntl.ioctl(fd, 0xc0181b01, struct.pack("=HHHHQII", 24, 0, 77, 0, 0, 0, 0))
    except OSError as error:
        return error.errno not in (errno.ENOTTY, errno.EBADF)
    return True
"""

CASES = {
    "dup and dup2 of the node": """
fd = node(); copy = os.dup(fd); os.dup2(fd, 200)
assert is_node(copy) and is_node(200) and stat.S_ISCHR(os.fstat(200).st_mode)
os.close(fd); assert is_node(copy) and not is_node(fd)
os.close(copy); os.close(200); still_works()""",
    "a context lives until its last descriptor is closed": """
copies = [os.dup(context.cmd_fd) if hasattr(context, "cmd_fd") else node() for _ in range(3)]
for fd in copies: os.close(fd)
still_works()""",
    "descriptor passed to oneself (SCM_RIGHTS)": """
a, b = socket.socketpair()
fd = node(); socket.send_fds(a, [b"x"], [fd]); os.close(fd)
_, fds, _, _ = socket.recv_fds(b, 1, 1)
assert is_node(fds[0]) and stat.S_ISCHR(os.fstat(fds[0]).st_mode); os.close(fds[0]); still_works()""",
    "descriptor passed to another process is no node there": """
a, b = socket.socketpair()
child = os.fork()
if child == 0:
    _, fds, _, _ = socket.recv_fds(b, 1, 1)
    os.execv(sys.executable, [sys.executable, "-c", "import fcntl, struct, sys\\n"
        "try: fcntl.ioctl(%d, 0xc0181b01, struct.pack('=HHHHQII', 24, 0, 77, 0, 0, 0, 0))\\n"
        "except OSError as e: sys.exit(0 if e.errno in (25, 9) else 1)\\nsys.exit(2)" % fds[0]])
fd = node(); socket.send_fds(a, [b"x"], [fd])
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert is_node(fd); still_works()""",
    "vfork and exec, closing every descriptor": """
for _ in range(3):
    assert subprocess.run(["ibv_devinfo", "-l"], close_fds=True, capture_output=True, text=True).stdout.count("mlx5_0")
    still_works()""",
    "posix_spawn": """
pid = os.posix_spawn("/usr/bin/ibv_devinfo", ["ibv_devinfo"], os.environ)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0; still_works()""",
    "system": """
assert os.system("ibv_devices | grep -q mlx5_0") == 0; still_works()""",
    "fork, and a device of the child's own": """
child = os.fork()
if child == 0:
    mine = d.Context(name="mlx5_0"); MR(PD(mine), 4096, e.IBV_ACCESS_LOCAL_WRITE); os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0; still_works()""",
    "exec of a program that uses the device": """
os.set_inheritable(node(), True)
os.execvp("ibv_devinfo", ["ibv_devinfo", "-l"])""",
    "libibverbs loaded for one module alone": """
own = ctypes.CDLL("libibverbs.so.1", mode=ctypes.RTLD_LOCAL)
count = ctypes.c_int()
own.ibv_get_device_list.restype = ctypes.c_void_p
devices = ctypes.cast(own.ibv_get_device_list(ctypes.byref(count)), ctypes.POINTER(ctypes.c_void_p))
own.ibv_open_device.restype = own.ibv_alloc_pd.restype = ctypes.c_void_p
handle = own.ibv_open_device(ctypes.c_void_p(devices[0]))
domain = own.ibv_alloc_pd(ctypes.c_void_p(handle))
assert count.value == 1 and handle and domain
assert own.ibv_dealloc_pd(ctypes.c_void_p(domain)) == 0 and own.ibv_close_device(ctypes.c_void_p(handle)) == 0
still_works()""",
    "mlockall with a device open": """
libc = ctypes.CDLL(None)
if libc.mlockall(3) != 0: sys.exit(0)
resident = int(open("/proc/self/statm").read().split()[1]) * 4096
assert resident < 1 << 30, resident
still_works()""",
    "mlockall before a device is opened": """
os.execv(sys.executable, [sys.executable, "-c", "import ctypes, os, sys\\n"
    "if ctypes.CDLL(None).mlockall(2) != 0: sys.exit(0)\\n"
    "os.close(os.open('/dev/infiniband/uverbs0', os.O_RDWR))\\n"
    "assert int(open('/proc/self/statm').read().split()[1]) < 1 << 18"])""",
    "threads open and close at once": """
import threading
def work():
    for _ in range(20):
        fd = node(); assert is_node(fd); os.close(fd)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
still_works()""",
}


def more_rights(bench):
    """A set-user-ID program of root's that nobody starts: neither the loader nor the library gives it a device."""
    name = "a program with more rights than its caller sees no device"
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return case(name, "skip: needs root and setpriv", 0)
    program = pathlib.Path(bench.run_dir) / "set-user-id"
    shutil.copy("/usr/bin/ibv_devices", program)
    program.chmod(0o4755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        return case(name, "skip: no set-user-ID programs on this file system", 0)
    end = bench.run([*nobody, str(program)], seconds=30)
    plain = subprocess.run(["/usr/bin/ibv_devices"], capture_output=True, text=True, timeout=30)
    return case(name, "" if end.code == plain.returncode and "mlx5_0" not in end.output else tail(end.output), 0)


def run(bench):
    for name, text in CASES.items():
        end = bench.run([PYTHON, "-c", OPENED + text], seconds=40)
        yield case(name, "" if end.code == 0 else f"{end.ending()}: {tail(end.output, 2)}", end.seconds)
    yield more_rights(bench)

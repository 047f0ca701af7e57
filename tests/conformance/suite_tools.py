"""Tools that list RDMA devices and their resources, as the distribution ships them, on the virtual node: what they read
from sysfs, ask through the device node and ask through NETLINK_RDMA."""
import json
import pathlib
import re
import signal
import time

import suite_processes
from harness import Bench, case, pair_problem, shell, tail
from suite_host import dissect

# Creates `count` PDs and CQs and that many QPs, then sleeps.
HOLDER = """
import sys, time
import pyverbs.device as d
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.qp import QP, QPInitAttr, QPCap
from pyverbs.srq import SRQ, SrqInitAttr
import pyverbs.enums as e
context = d.Context(name="mlx5_0")
pd, cq = PD(context), CQ(context, 100)
keep = [MR(pd, 8192, e.IBV_ACCESS_LOCAL_WRITE), SRQ(pd, SrqInitAttr())]
for _ in range(int(sys.argv[1])):
    keep.append(QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap())))
print("ready", flush=True)
time.sleep(60)
"""
PYTHON = "/usr/bin/python3"

# A caller that speaks netlink by hand, by other functions than the libraries use: write(2), send(2), read(2), recv(2).
BY_HAND = """
import os, socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
s.bind((0, 0))
assert s.getsockname() == (os.getpid(), 0), s.getsockname()
request = struct.pack("=IHHII", 16, 5 << 10 | 1, 0x301, 9, 0)
for send in (s.send, lambda r: os.write(s.fileno(), r), lambda r: s.sendto(r, (0, 0)), lambda r: s.sendmsg([r])):
    assert send(request) == 16
    assert b"mlx5_0" in os.read(s.fileno(), 4096)
    assert struct.unpack("=IHHII", s.recv(4096)[:16])[1] == 3
other = socket.socket(fileno=os.dup(s.fileno()))
other.setblocking(False)
s.close()
other.send(request)
data, _, _, sender = other.recvmsg(4096)
assert b"mlx5_0" in data and sender == (0, 0), sender
other.recv(4096)
try:
    other.recv(4096)
    raise SystemExit("there is more")
except BlockingIOError:
    pass
print("good")
"""


# The port's network interface, by those who ask for it without netlink; and as others see the host's own.
INTERFACE = """
import array, errno, fcntl, os, socket, struct
NAME = "enp200s0np0"
def ask(request, name=NAME, tail=b""):
    return fcntl.ioctl(any_socket, request, struct.pack("16s24s", name.encode(), tail))[16:]
any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
number = socket.if_nametoindex(NAME)
assert socket.if_indextoname(number) == NAME
assert struct.unpack("i", ask(0x8933)[:4])[0] == number  # SIOCGIFINDEX
mac = ":".join("%02x" % b for b in ask(0x8927)[2:8])
folder = "/sys/class/net/" + NAME
assert open(folder + "/address").read() == mac + chr(10)
assert os.path.realpath(folder + "/device") == os.path.realpath("/sys/class/infiniband/mlx5_0/device")
flags, = struct.unpack("h", ask(0x8913)[:2])
assert flags & 0x41 == 0x41  # up and running
ask(0x8914, tail=struct.pack("h", flags | 0x100))
assert struct.unpack("h", ask(0x8913)[:2])[0] == flags | 0x100  # promiscuous
ask(0x8922, tail=struct.pack("i", 9000))
assert struct.unpack("i", ask(0x8921)[:4])[0] == 9000
for request, tail, wanted in ((0x8922, struct.pack("i", 20000), errno.EINVAL), (0x8915, b"", errno.EADDRNOTAVAIL)):
    try:
        ask(request, tail=tail)
    except OSError as error:
        assert error.errno == wanted, error
    else:
        raise SystemExit("it was taken")
assert struct.unpack("h", ask(0x8913, "lo")[:2])[0] & 8  # of the host: a loopback
route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
def link(index, flags=1):
    route.send(struct.pack("=IHHIIBBHiII", 32, 18, flags, 7, 0, 0, 0, 0, index, 0, 0))
    assert len(route.recv(0, socket.MSG_PEEK | socket.MSG_TRUNC)) == 0
    return route.recv(65536)
for index, name in ((number, NAME), (1, "lo")):
    answer = link(index)
    assert struct.unpack("=IHHI", answer[:12]) == (len(answer), 16, 0, 7) and name.encode() + bytes(1) in answer, answer
print("good")
"""


def has(bench, argv, wanted, **options):
    """The program ends well and prints all of the wanted patterns."""
    end = bench.run(argv, seconds=30, **options)
    missing = [w for w in wanted if not re.search(w, end.output, re.M)]
    problem = f"{end.ending()}: {tail(end.output)}" if end.code != 0 else f"lacks {missing[0]}" if missing else ""
    return case(shell(argv), problem, end.seconds, shell(argv))


def listings(bench):
    yield has(bench, ["rdma", "dev", "show"], [r"^0: mlx5_0: node_type ca fw 28\.\d+\.\d+ node_guid [0-9a-f:]{19} "])
    yield has(bench, ["rdma", "-d", "dev", "show", "mlx5_0"], ["adaptive-moderation on", "caps: <.*MEM_WINDOW"])
    two = has(bench, ["rdma", "dev"], ["^0: mlx5_0", "^1: mlx5_1"], devices=2)
    yield dict(two, name="rdma dev, two devices")
    yield has(bench, ["rdma", "link", "show"], [r"^link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev enp200s0np0"])
    yield has(bench, ["ip", "link", "show", "dev", "enp200s0np0"], ["^200000: enp200s0np0: <.*,UP,.*> mtu 4200 ", "link/ether 02:"])
    yield has(bench, ["rdma", "system", "show"], ["netns shared copy-on-fork on"])
    yield has(bench, ["rdma", "statistic", "show", "link", "mlx5_0/1"], ["rx_write_requests 0", "out_of_sequence 0"])
    yield has(bench, ["ibstat"], ["CA 'mlx5_0'", "CA type: MT4129", "State: Active", "Physical state: LinkUp",
                                  "Rate: 200", "Link layer: Ethernet"])
    yield has(bench, ["ibstatus"], ["device 'mlx5_0' port 1", r"default gid:\s+fe80:", "4: ACTIVE"])
    yield has(bench, ["ibv_devinfo", "-l"], ["mlx5_0"])
    yield has(bench, ["lstopo-no-graphics", "--of", "console"], [r"PCI c8:00\.0 \(Ethernet\)", 'OpenFabrics "mlx5_0"'])
    for argv in (["rdma", "dev", "show", "mlx5_7"], ["rdma", "link", "add", "x", "type", "rxe", "netdev", "lo"]):
        end = bench.run(argv, seconds=30)
        yield case(shell(argv) + " is refused", "" if end.code else "it was not: " + tail(end.output), end.seconds)
    for name, text in (("netlink by hand", BY_HAND), ("the port's network interface", INTERFACE)):
        end = bench.run([PYTHON, "-c", text], seconds=30)
        yield case(name, "" if end.output == "good\n" else tail(end.output), end.seconds)


def rows(bench, what, host=None):
    end = bench.run(["rdma", "-j", "-d", "resource", "show", what], seconds=30, host=host)
    return json.loads(end.output) if end.code == 0 and end.output.strip() else []


def summary(bench, host=None):
    end = bench.run(["rdma", "resource", "show"], seconds=30, host=host)
    return dict(re.findall(r" (\w+) (\d+)", end.output))


def holders(bench, count, number=2):
    """Processes that hold `count` QPs each, once they do."""
    made = [bench.start([PYTHON, "-c", HOLDER, str(count)]) for _ in range(number)]
    deadline = time.monotonic() + 30 * bench.patience
    while time.monotonic() < deadline and all(p.alive() for p in made):
        if int(summary(bench).get("qp", 0)) >= count * number:
            break
        time.sleep(0.05)
    return made


def resources(bench):
    started = time.monotonic()
    count = 400  # needs many datagrams, more than a socket buffers
    made = holders(bench, count)
    pids = {p.popen.pid for p in made}
    sums = summary(bench)
    wanted = {"pd": 2, "cq": 2, "qp": 2 * count, "mr": 2, "ctx": 2, "srq": 2, "cm_id": 0}
    wrong = {k: sums.get(k) for k, v in wanted.items() if sums.get(k) != str(v)}
    yield case("rdma resource show", f"wrong: {wrong}" if wrong else "", time.monotonic() - started)
    qps = rows(bench, "qp")
    good = len(qps) == 2 * count and {q["pid"] for q in qps} == pids and len({q["lqpn"] for q in qps}) == 2 * count and \
        all(q["state"] == "RESET" and q["type"] == "RC" and q["comm"] == "python3" for q in qps)
    yield case("rdma resource show qp", "" if good else f"{len(qps)} rows, first {qps[:1]}", 0)
    pds, cqs, mrs, srqs, ctxs = (rows(bench, w) for w in ("pd", "cq", "mr", "srq", "ctx"))
    numbers = {p["pdn"] for p in pds}
    good = len(numbers) == 2 and {p["pid"] for p in pds} == pids and all(p["users"] == count + 2 for p in pds) and \
        {m["pdn"] for m in mrs} == {q["pdn"] for q in qps} == {s["pdn"] for s in srqs} == numbers
    yield case("rdma resource show pd", "" if good else f"{pds} {mrs} {srqs}", 0)
    good = len(cqs) == 2 and all(c["users"] == 2 * count and c["cqe"] == 127 for c in cqs) and \
        {c["ctxn"] for c in cqs} == {c["ctxn"] for c in ctxs}
    yield case("rdma resource show cq", "" if good else f"{cqs} {ctxs}", 0)
    good = all(m["mrlen"] == 8192 and m["pid"] in pids for m in mrs) and len(mrs) == 2
    yield case("rdma resource show mr", "" if good else str(mrs), 0)
    elsewhere = rows(bench, "qp", host="other")
    yield case("rdma resource show on another host", f"{len(elsewhere)} QPs" if elsewhere else "", 0)
    made[0].kill(signal.SIGKILL)
    made[0].wait(5)
    left = {q["pid"] for q in rows(bench, "qp")}
    yield case("resources of a killed process are gone", "" if left == {made[1].popen.pid} else str(left), 0)
    for process in made[1:]:
        process.kill()
        process.wait(5)


def connected(bench):
    """A QP in use: its peer, its state."""
    server = bench.start(["ibv_rc_pingpong", "-g", "3", "-p", "18599", "-n", "100000000"])
    time.sleep(1)
    client = bench.start(["ibv_rc_pingpong", "-g", "3", "-p", "18599", "-n", "100000000", "localhost"])
    deadline = time.monotonic() + 20 * bench.patience
    qps = []
    while time.monotonic() < deadline and server.alive():
        qps = rows(bench, "qp")
        if len(qps) == 2 and all(q["state"] == "RTS" for q in qps):
            break
    good = len(qps) == 2 and qps[0]["rqpn"] == qps[1]["lqpn"] and qps[1]["rqpn"] == qps[0]["lqpn"] and \
        all(q["comm"] == "ibv_rc_pingpong" and q["port"] == 1 for q in qps)
    yield case("rdma resource show qp, connected", "" if good else str(qps), 0)
    for process in (client, server):
        process.kill()
        process.wait(5)


COUNTERS = ["port_xmit_packets", "port_xmit_data", "port_rcv_packets", "port_rcv_data"]


def counters(bench):
    """The port counts the frames that the capture has, and all that it sent came to it."""
    folder = "/sys/class/infiniband/mlx5_0/ports/1"

    def read(*names):
        end = bench.run(["cat", *[f"{folder}/{name}" for name in names]], seconds=30, host="counted")
        return [int(n) for n in end.output.split()] if end.code == 0 else []

    for command in (["ibv_rc_pingpong", "-g", "3", "-s", "3000", "-n", "20"], ["ib_read_bw", "-F", "-s", "10000", "-n", "10"],
                    ["ibv_ud_pingpong", "-g", "3", "-s", "700", "-n", "20"]):
        path = pathlib.Path(bench.run_dir) / f"{command[0]}.pcapng"
        before = read(*[f"counters/{name}" for name in COUNTERS])
        argv = [*command, "-p", "{port}"]
        ends = bench.pair(argv, argv + ["localhost"], hosts=("counted", "counted"), capture=path)
        after = read(*[f"counters/{name}" for name in COUNTERS])
        problem = pair_problem(*ends)
        if not problem:
            lengths = [int(n) for n in dissect(path, "-T", "fields", "-e", "frame.len")]
            seen = [b - a for a, b in zip(before, after, strict=True)]
            data = [sum(lengths) // 4 - 1, sum(lengths) // 4 + 1]
            good = seen[0] == seen[2] == len(lengths) > 20 and all(data[0] <= n <= data[1] for n in (seen[1], seen[3]))
            problem = "" if good else f"counted {seen}, captured {len(lengths)} frames of {sum(lengths)} bytes"
        yield case(f"counters of the port: {command[0]}", problem, ends[1].seconds, shell(command))
    argv = ["ib_write_bw", "-F", "-n", "50", "-s", "64", "-p", "{port}"]
    before = read("hw_counters/rx_write_requests")
    ends = bench.pair(argv, argv + ["localhost"], hosts=("counted", "counted"))
    seen = read("hw_counters/rx_write_requests")[0] - before[0]
    # perftest writes 50 messages, and some more to warm up or to say that it is done
    problem = pair_problem(*ends) or ("" if 50 <= seen <= 60 else f"{seen} RDMA WRITE requests")
    yield case("hw_counters/rx_write_requests", problem, ends[1].seconds)


def run(quick, preset):
    with Bench(preset) as bench:
        bench.stack = "system"
        yield from listings(bench)
        yield from resources(bench)
        yield from connected(bench)
        yield from counters(bench)
        yield from suite_processes.run(bench)

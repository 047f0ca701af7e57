"""Reads a capture as outsiders do: tshark must dissect every frame without a mark, and every ICRC must be the one
scapy (IPv4) or the few lines below (IPv6, GRH), written from the annex and not from our code, compute.

check_capture.py FILE FRAMES [INTERFACE...]: exit 0 if the capture holds exactly that (FRAMES -1: any number but 0).
"""
import logging
import struct
import subprocess
import sys
import zlib

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import Ether, PcapNgReader  # noqa: E402
from scapy.contrib.roce import BTH  # noqa: E402


def icrc(frame):
    ethertype = struct.unpack_from("!H", frame, 12)[0]
    packet = bytearray(frame[14:-4])
    if ethertype == 0x0800:
        network = 20
        for at in (1, 8, 10, 11):
            packet[at] = 0xFF
    else:
        network = 40
        packet[0] |= 0x0F
        for at in (1, 2, 3, 7):
            packet[at] = 0xFF
    bth = network
    if ethertype != 0x8915:
        packet[network + 6] = packet[network + 7] = 0xFF
        bth += 8
    packet[bth + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(packet)))


def main(path, frames, interfaces):
    problems = []
    read = list(PcapNgReader(path))
    frames = frames if frames >= 0 else max(1, len(read))
    if len(read) != frames:
        problems.append(f"{len(read)} frames, not {frames}")
    for number, packet in enumerate(read, 1):
        frame = bytes(packet.original)
        if frame[-4:] != icrc(frame):
            problems.append(f"frame {number}: ICRC is wrong")
        if frame[12:14] == b"\x08\x00":
            rebuilt = Ether(frame)
            rebuilt[BTH].icrc = None
            if bytes(rebuilt) != frame:
                problems.append(f"frame {number}: scapy builds another frame")
    fields = ["frame.number", "frame.interface_name", "_ws.malformed", "_ws.expert.message", "infiniband.bth.opcode"]
    # RPC-over-RDMA is guessed from any payload; RoCEv2 sends a zero UDP checksum over IPv6 as well.
    command = ["tshark", "-r", path, "--disable-protocol", "rpcordma", "-o", "ip.check_checksum:TRUE"]
    command += ["-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-T", "fields"]
    out = subprocess.run(command + [a for f in fields for a in ("-e", f)], capture_output=True, text=True, timeout=60)
    rows = [line.split("\t") for line in out.stdout.splitlines()]
    if out.returncode or len(rows) != frames:
        problems.append(f"tshark read {len(rows)} frames: {out.stderr.strip()}")
    for row in rows:
        row[3] = row[3].replace('"Time To Live" only 1', "")  # what ping-pong programs ask for
        if row[2] or row[3]:
            problems.append(f"frame {row[0]}: tshark says {row[2]} {row[3]}")
        if not row[4]:
            problems.append(f"frame {row[0]}: tshark sees no BTH")
    if interfaces and sorted({row[1] for row in rows}) != sorted(interfaces):
        problems.append(f"interfaces are {sorted({row[1] for row in rows})}")
    print("\n".join(problems) or "ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))

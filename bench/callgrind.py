"""Sums of a callgrind profile by who executed the instructions.

The counts wanted are those of the program, the C library and the RDMA library, as a real NIC would leave them: what the
emulated device does when it is called (libverbena-nic.so, and all that it calls) is counted apart.
"""
import pathlib
import re

DEVICE = "libverbena-nic.so"


def parse(path):
    """(trigger name, instructions outside the device, instructions in the device)"""
    names = {}  # compressed names: (kind, id) -> name

    def name(kind, text):
        match = re.match(r"\((\d+)\)(?:\s+(.*))?$", text)
        if not match:
            return text
        if match.group(2):
            names[kind, match.group(1)] = match.group(2)
        return names.get((kind, match.group(1)), "?")

    trigger, here, total, entered, callee, pending = "", "", 0, 0, "", False
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("desc: Trigger:"):
            trigger = line.split("Client Request:", 1)[-1].strip()
        elif line.startswith("ob="):
            here = name("ob", line[3:])
            callee = here
        elif line.startswith("cob="):
            callee = name("ob", line[4:])
        elif line.startswith("fn="):
            callee = here
        elif line.startswith("calls="):
            pending = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            words = line.split()
            if len(words) < 2:
                continue
            cost = int(words[1])
            if pending:  # the inclusive cost of the call before
                if DEVICE in callee and DEVICE not in here:
                    entered += cost
                pending, callee = False, here
            else:
                total += cost
    return trigger, total - entered, entered

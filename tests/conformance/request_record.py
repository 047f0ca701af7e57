"""Records of `verbena run --record`: reads them, makes those of two runs comparable, and tells how they differ.

Two libraries that issue the same requests still differ in addresses, handles and descriptors, and in what peers and random
numbers put in: normalise() replaces those. Results are left out, for the kernel's role makes them; the room that was given
for them is kept.

Of programs whose order, threads and amounts are chance (they make progress in threads of their own, and connections and
memory as they come to need them) what can be compared is which sorts of requests they make: sorts_differences().
"""
import difflib
import itertools
import json
import re

# What differs from run to run: numbers of the peer's QPs and packets, and of the program's own random ones.
VOLATILE = {"dest_qp_num", "rq_psn", "sq_psn", "qpn"}
SMALL = 1 << 20  # an address is larger; a number that the program passes for one is not


class Numbers:
    """Ordinals for numbers that an allocator gives out: a new one for each that is created, by whatever number."""

    def __init__(self, what):
        self.what, self.known, self.count = what, {}, 0

    def create(self, value):
        self.count += 1
        self.known[value] = f"{self.what} {self.count}"
        return self.known[value]

    def use(self, value):
        return self.known.get(value, f"{self.what} unknown {value}")

    def at(self, _head):
        """The request at hand is one of these."""


class Origins(Numbers):
    """Instead of ordinals: which requests created those numbers."""

    head = ""

    def create(self, value):
        self.known[value] = f"{self.what} of {self.head}"
        return self.known[value]

    def use(self, value):
        return self.known.get(value, f"{self.what} unknown")

    def at(self, head):
        self.head = head


class Process:
    """Makes the lines of one process comparable, in order. Handles are those of an open file: `handles` is the one at hand."""

    numbers = Numbers

    def __init__(self):
        self.files, self.fds = {}, self.numbers("fd")
        self.handles = self.numbers("handle")

    def address(self, text, seen):
        """Which of the addresses of the same request: that two are equal matters, where they are does not."""
        value = int(text, 16)
        if value < SMALL:
            return value
        return seen.setdefault(value, f"address {len(seen) + 1}")

    def field(self, name, value, seen):
        last = name.rpartition(".")[2]
        if isinstance(value, str) and value.startswith("0x"):
            return self.address(value, seen)
        if last in VOLATILE:
            return "set" if value else 0
        if last.endswith("_handle"):
            return self.handles.use(value)
        if last in ("comp_channel", "fd"):
            return self.fds.use(value) if value not in (-1, 0xffffffff) else -1
        return value

    def fields(self, fields, seen):
        if isinstance(fields, list):
            return [self.fields(f, seen) for f in fields]
        return {name: self.field(name, value, seen) for name, value in fields.items()}

    def attribute(self, attribute, seen):
        kept = {}
        for name, value in attribute.items():
            if name == "handle":
                kept[name] = self.handles.use(value)
            elif name == "new handle":
                kept[name] = self.handles.create(value)
            elif name == "fd":
                kept[name] = self.fds.use(value)
            elif name == "new fd":
                kept[name] = self.fds.create(value)
            elif name == "handles":
                kept[name] = [self.handles.use(v) for v in value]
            elif name == "fields":
                kept.update(self.fields(value, seen) if isinstance(value, dict) else {name: self.fields(value, seen)})
            elif name in ("address", "raw"):
                kept[name] = self.address(value, seen)
            else:
                kept[name] = value
        return kept

    def learn(self, line):
        """Handles and descriptors that come as results of legacy commands."""
        for attribute in line["attrs"].values():
            fields = attribute.get("fields")
            if "room" in attribute and isinstance(fields, dict):
                for name, value in fields.items():
                    last = name.rpartition(".")[2]
                    if last.endswith("_handle"):
                        self.handles.create(value)
                    elif last in ("fd", "async_fd"):
                        self.fds.create(value)

    def line(self, line):
        """(head, details) of one line; None for one that is no request."""
        if line["call"] == "open":
            self.fds.at("open")
            if line["new fd"] >= 0:
                self.fds.create(line["new fd"])
                self.files[line["new fd"]] = self.numbers("handle")
            return "open", {"device": line["device"], "errno": line["errno"]}
        if line["call"] == "mmap":
            return f"mmap {line['page']}".strip(), {k: line[k] for k in ("offset", "length", "prot", "flags", "errno")}
        if line["call"] != "ioctl" or "attrs" not in line:
            return None
        self.handles = self.files.setdefault(line["fd"], self.numbers("handle"))
        head = " ".join(str(line[k]) for k in ("object", "method", "command") if k in line)
        self.fds.at(head)
        self.handles.at(head)
        seen, details = {}, {"errno": line["errno"]}
        for name, attribute in line["attrs"].items():
            if "room" in attribute:
                details[name] = {k: attribute[k] for k in ("room", "optional") if k in attribute}
            else:
                details[name] = self.attribute(attribute, seen)
        self.learn(line)
        return head, details


class SortsProcess(Process):
    """The same without what chance decides: how large memory is, and the numbers in commands of DEVX."""

    numbers = Origins

    def field(self, name, value, seen):
        value = super().field(name, value, seen)
        return "some" if name.rpartition(".")[2] == "length" and value else value

    def attribute(self, attribute, seen):
        kept = super().attribute(attribute, seen)
        if "bytes" in kept:
            kept["bytes"] = kept["bytes"][:4]  # the opcode
        return kept


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def flatten(details, prefix=""):
    for name, value in details.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def normalise(lines):
    """The requests of each thread, threads in the order in which they make their first. Cases of a test program, which
    announce themselves in the record, stand apart: {case: {thread: [(head, {name: value})]}}."""
    processes, cases, case = {}, {}, ""
    for line in lines:
        if line["call"] == "case":
            case = line["name"]
            continue
        process = processes.setdefault(line["process"], Process())
        request = process.line(line)
        if request:
            head, details = request
            thread = cases.setdefault(case, {}).setdefault((line["process"], line["thread"]), [])
            thread.append((head, dict(flatten(details))))
    return {case: {name: settle(requests) for name, requests in threads.items()} for case, threads in cases.items()}


def settle(requests):
    """Objects of a kind that are destroyed one after the other, in the order of their handles: pyverbs keeps them in sets,
    which have the order of addresses."""
    settled = []
    for head, group in itertools.groupby(requests, key=lambda r: r[0]):
        settled += sorted(group, key=key) if head.endswith("_DESTROY") else group
    return settled


def key(request):
    head, details = request
    return head + json.dumps(details, sort_keys=True)


def bytes_difference(a, b):
    """Where strings of hexadecimal digits differ first: the four bytes there."""
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b))) // 8 * 8
    return f" at byte {at // 2}: {a[at:at + 8] or 'none'}, not {b[at:at + 8] or 'none'}"


def pair_difference(ours, theirs):
    head, a = ours
    b = theirs[1]
    for name in sorted(a.keys() | b.keys()):
        x, y = a.get(name, "none"), b.get(name, "none")
        if x == y:
            continue
        both = name.endswith((".bytes", ".more")) and "none" not in (x, y)
        yield f"{head}: {name}" + (bytes_difference(x, y) if both else f": {x}, not {y}")


def block_differences(ours, theirs):
    """Of two stretches in which no request is equal: those of one name are compared, the others are too many."""
    matcher = difflib.SequenceMatcher(None, [h for h, _ in ours], [h for h, _ in theirs], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for a, b in zip(ours[i:i_end], theirs[j:j_end], strict=True):
                yield from pair_difference(a, b)
            continue
        for request in ours[i:i_end]:
            yield f"{title(request)}: not issued by the other"
        for request in theirs[j:j_end]:
            yield f"{title(request)}: missing"


def title(request):
    """Its name, and of what type is what it makes."""
    head, details = request
    types = [str(value) for name, value in details.items() if name.endswith("_TYPE.value")]
    return " ".join([head, "of type", *types] if types else [head])


def thread_differences(ours, theirs):
    matcher = difflib.SequenceMatcher(None, [key(r) for r in ours], [key(r) for r in theirs], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag != "equal":
            yield from block_differences(ours[i:i_end], theirs[j:j_end])


def differences(ours, theirs):
    """How the first record differs from the second: {case: sorted lines, each once}, cases without any left out."""
    ours, theirs = normalise(ours), normalise(theirs)
    found = {}
    for case in sorted(ours.keys() | theirs.keys()):
        a, b = list(ours.get(case, {}).values()), list(theirs.get(case, {}).values())
        lines = set()
        if len(a) != len(b):
            lines.add(f"{len(a)} threads, not {len(b)}")
        for one, other in zip(a, b):
            lines.update(thread_differences(one, other))
        if lines:
            found[case] = sorted(lines)
    return found


def sorts(lines):
    """The distinct requests among the lines of all processes and threads, sorted."""
    processes, found = {}, {}
    for line in lines:
        request = processes.setdefault(line["process"], SortsProcess()).line(line)
        if request:
            request = request[0], dict(flatten(request[1]))
            found[key(request)] = request
    return [found[text] for text in sorted(found)]


def sorts_differences(ours, theirs):
    """Sorted lines, each once: requests of a sort that only one of the two records has."""
    return sorted(set(thread_differences(sorts(ours), sorts(theirs))))


def explain(found, explanations, program):
    """Splits lines into the unexplained ones and the explanations used: {what, why}, and `programs` if not for all."""
    unexplained, used = [], []
    for line in found:
        fitting = [e for e in explanations
                   if re.fullmatch(e["what"], line) and re.search(e.get("programs", ""), program)]
        if not fitting:
            unexplained.append(line)
        used += fitting
    return unexplained, used

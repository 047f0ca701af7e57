#!/usr/bin/env python3
"""Generates a test that compares every declared field with the kernel's mlx5_ifc.h.

usage: layout_check.py <folder of layouts> <exceptions file> <output .cc> <output .c>

Each layout whose CamelCase name stands in mlx5_ifc.h is compared field by field: bit offset, width, count. The C
output compiles the kernel's header and measures its side, the C++ output measures ours. The script itself checks
that no field is missing on either side; what it finds becomes a failing test.
"""
import glob
import pathlib
import re
import sys

KERNEL_HEADER = "/usr/src/linux-headers-*-common/include/linux/mlx5/mlx5_ifc.h"

STRUCT = re.compile(r"struct (\w+) : (\w+)(?:<\w+>)? \{(.*?)\n?\};", re.S)
MEMBER = re.compile(r'using (\w+) =\s*(Field|Field16|Field64|Bytes|Sub|Array)<"(\w+)"', re.S)
LISTED = re.compile(r"using fields =\s*Fields<(.*?)>;", re.S)


def newest_header():
    def version(path):
        return [int(n) for n in re.findall(r"\d+", path)]

    found = sorted(glob.glob(KERNEL_HEADER), key=version)
    return found[-1] if found else None


def read_layouts(folder):
    """-> {layout: (base, {alias: field name}, [aliases in `fields`])}"""
    layouts = {}
    for path in sorted(pathlib.Path(folder).glob("*.h")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        if path.name in ("layout.h", "validate.h", "print.h"):
            continue
        for name, base, body in STRUCT.findall(text):
            members = {alias: field for alias, _, field in MEMBER.findall(body)}
            listed = LISTED.search(body)
            order = [f.strip() for f in listed.group(1).split(",") if f.strip()] if listed else []
            layouts[name] = (base, members, order)
    return layouts


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def read_kernel(path):
    """-> {CamelCase name: (C tag, {field: (is an array, has a fixed count)})}"""
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(path).read_text(), flags=re.S)
    structs = {}
    declaration = re.compile(r"^(struct|union) mlx5_ifc_(\w+?)(_bits)? \{\n(.*?)^\};", re.S | re.M)
    for kind, name, bits, body in declaration.findall(text):
        named = {}
        for type_name, field, extents in re.findall(r"([\w ]+?)\s+(\w+)((?:\[[^\]]*\])*);", body):
            if re.match(r"(reserved|rsvd)", field):
                continue
            # u8 x[w] is w bits; u8 x[n][w] and struct s x[n] are arrays.
            levels = extents.count("[") - (1 if type_name.strip() == "u8" else 0)
            named[field] = (levels > 0, not extents.startswith("[]"))
        structs[camel(name)] = (f"{kind} mlx5_ifc_{name}{bits}", named)
    return structs


def read_exceptions(path):
    """Lines `<kind> <Layout>: a b c`; kinds are newer, overlay, omitted, own, updated."""
    table = {"newer": {}, "overlay": {}, "omitted": {}, "own": {}, "updated": {}}
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        kind, rest = line.split(" ", 1)
        layout, _, names = rest.partition(":")
        table[kind].setdefault(layout.strip(), set()).update(names.split())
    return table


def compare(layouts, kernel, exceptions):
    rows, sizes, problems = [], [], []
    used = {kind: {} for kind in exceptions}

    def excepted(kind, layout, name):
        if name in exceptions[kind].get(layout, ()):
            used[kind].setdefault(layout, set()).add(name)
            return True
        return False

    for layout, (base, members, order) in layouts.items():
        if base != "Layout":
            members, order = layouts[base][1], layouts[base][2]
        overlays = {alias for alias in members if excepted("overlay", layout, alias)}
        for alias in members:
            if alias not in order and alias not in overlays:
                problems.append(f"{layout}::{alias} is not in the list `fields`")
        if layout not in kernel:
            if layout in exceptions["own"]:
                used["own"][layout] = set()
            else:
                problems.append(f"{layout} is not in mlx5_ifc.h and not excepted")
            continue
        tag, named = kernel[layout]
        updated = exceptions["updated"].get(layout, set())
        before_update = not updated <= named.keys()
        if not before_update:
            sizes.append((layout, tag))
        for alias, field in members.items():
            if alias in overlays:
                continue
            if field in named:
                rows.append((layout, alias, tag, field))
            elif field not in updated and not excepted("newer", layout, field):
                problems.append(f"{layout}::{alias} is not in mlx5_ifc.h and not excepted")
        for field in named:
            if field not in members.values() and not before_update and not excepted("omitted", layout, field):
                problems.append(f"{layout} lacks the field {field}")
    for kind in exceptions.keys() - {"updated"}:  # whether these are needed depends on the header
        for layout, names in exceptions[kind].items():
            stale = names - used[kind].get(layout, set())
            if stale or (not names and layout not in used[kind]):
                problems.append(f"exception no longer needed: {kind} {layout}: {' '.join(sorted(stale))}")
    return rows, sizes, problems


def read_opcodes(folder, exceptions):
    """-> [(our name, kernel constant)] of enum class Opcode."""
    text = (pathlib.Path(folder) / "command.h").read_text()
    body = re.search(r"enum class Opcode .*?\{(.*?)\};", text, re.S).group(1)
    names = [n for n in re.findall(r"(\w+) = 0x", body) if n not in exceptions["newer"].get("Opcode", ())]
    renamed = {"qp_2err": "2ERR_QP", "qp_2rst": "2RST_QP"}
    return [(name, "MLX5_CMD_OP_" + renamed.get(name, name.upper())) for name in names]


def emit_kernel_side(out, header, rows, sizes, opcodes, kernel):
    text = ["/* Generated by layout_check.py: the kernel's side. */"]
    text += ['#include "tests/unit/prm/layout_check_kernel.h"', f'#include "{header}"', ""]
    text += ["const struct KernelPlace kKernelPlaces[] = {"]
    for layout, _, tag, field in rows:
        is_array, fixed = kernel[layout][1][field]
        text.append(f"    {'ARRAY' if is_array and fixed else 'TAIL' if is_array else 'PLAIN'}({tag}, {field}),")
    text += ["};", "const size_t kKernelSizes[] = {"]
    text += [f"    sizeof({tag})," for _, tag in sizes]
    text += ["};", "const unsigned kKernelOpcodes[] = {"]
    text += [f"    {constant}," for _, constant in opcodes]
    text += ["};", ""]
    out.write_text("\n".join(text))


def emit_our_side(out, layouts_folder, rows, sizes, opcodes, problems):
    text = ["// Generated by layout_check.py: our side and the tests."]
    text += ['#include "tests/unit/prm/layout_check.h"']
    text += [f'#include "prm/{p.name}"' for p in sorted(pathlib.Path(layouts_folder).glob("*.h"))]
    text += ["", "namespace verbena::prm::layout_check {", "", "const Row kRows[] = {"]
    text += [f"    ROW({layout}, {alias})," for layout, alias, _, _ in rows]
    text += ["};", "const Size kSizes[] = {"]
    text += [f"    SIZE({layout})," for layout, _ in sizes]
    text += ["};", "const Opcode kOpcodes[] = {"]
    text += [f"    Opcode::{name}," for name, _ in opcodes]
    text += ["};", "const char* const kProblems[] = {"]
    text += [f'    "{p}",' for p in problems] + ["    nullptr,", "};", ""]
    text += ["LAYOUT_CHECK_TESTS()", "", "}  // namespace verbena::prm::layout_check", ""]
    out.write_text("\n".join(text))


def main():
    folder, exceptions_file = sys.argv[1:3]
    ours, theirs = map(pathlib.Path, sys.argv[3:5])
    header = newest_header()
    if header is None:
        ours.write_text(
            "#include <gtest/gtest.h>\n"
            "TEST(LayoutCheck, KernelHeader) {\n"
            f'  FAIL() << "no {KERNEL_HEADER}: install the linux-headers-<version>-common package, then rebuild";\n'
            "}\n"
        )
        theirs.write_text("typedef int nothing;\n")
        return
    kernel, exceptions = read_kernel(header), read_exceptions(exceptions_file)
    opcodes = read_opcodes(folder, exceptions)
    exceptions["newer"].pop("Opcode", None)
    rows, sizes, problems = compare(read_layouts(folder), kernel, exceptions)
    emit_our_side(ours, folder, rows, sizes, opcodes, problems)
    emit_kernel_side(theirs, header, rows, sizes, opcodes, kernel)


if __name__ == "__main__":
    main()

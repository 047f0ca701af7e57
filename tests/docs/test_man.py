"""Are the manual pages true to the header, complete, and clean?

  ctest -R docs.man      or:  python3 tests/docs/test_man.py [path of the verbena program]
"""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import man  # noqa: E402

HEADERS = ROOT / "include" / "infiniband" / "mlx5dv"
COVERED = ("device.h", "devx.h", "object.h", "queue.h")  # steering, crypto and work request builders follow
VERBENA = None
# Documented errors without a case, by function and errno (both may be patterns), and why. A row that some case makes
# superfluous fails the test.
KNOWN = "the kernel's role knows the request, whatever the device"
OWN_OBJECT = "only contexts of this provider have such objects"
UNPROVOKED = {
    ("mlx5dv_devx_get_async_cmd_comp", "ENOMEM"): "of making a channel",
    ("mlx5dv_*_export", "ENOMEM"): "of an import: nothing is allocated for what is exported",
    ("mlx5dv_reserved_qpn_dealloc", "ENOMEM"): "of taking a number",
    ("mlx5dv_alloc_var", "EPROTONOSUPPORT"): "every profile has the pages",
    ("mlx5dv_query_port", "EPROTONOSUPPORT"): KNOWN,
    ("mlx5dv_get_data_direct_sysfs_path", "EPROTONOSUPPORT"): KNOWN,
    ("mlx5dv_reg_dmabuf_mr", "EPROTONOSUPPORT"): KNOWN,
    ("*", "ENFILE"): "all descriptors of the machine would have to be taken",
    ("mlx5dv_devx_alloc_uar", "ENOSPC"): "of kernels that fix the pages when the context is opened",
    ("mlx5dv_devx_create_cmd_comp", "EAGAIN ENOSPC EINVAL EIO"): "of taking an answer",
    ("mlx5dv_devx_get_async_cmd_comp", "EMFILE EOPNOTSUPP EPROTONOSUPPORT"): "of making a channel",
    ("mlx5dv_devx_get_event", "EOVERFLOW"): "of kernels that drop events; docs/fidelity.md says what happens here",
    ("mlx5dv_devx_general_cmd", "ENOENT"): "of an object",
    ("mlx5dv_devx_obj_create", "EBADF EAGAIN"): "of asynchronous queries",
    ("mlx5dv_devx_obj_query", "EBADF EAGAIN EOPNOTSUPP"): "of asynchronous queries; " + OWN_OBJECT,
    ("mlx5dv_devx_obj_modify", "EBADF EAGAIN EOPNOTSUPP"): "of asynchronous queries; " + OWN_OBJECT,
    ("mlx5dv_devx_obj_destroy", "EBADF EAGAIN EOPNOTSUPP"): "of asynchronous queries; " + OWN_OBJECT,
    ("mlx5dv_devx_obj_destroy", "EREMOTEIO"): "it has no output",
    ("mlx5dv_devx_general_cmd", "EBADF EAGAIN"): "of asynchronous queries",
    ("mlx5dv_devx_obj_query_async", "EREMOTEIO"): "the refusal is in the answer: tests/programs/devx.cc",
    ("mlx5dv_devx_obj_query_async", "EOPNOTSUPP"): OWN_OBJECT,
    ("mlx5dv_*_export", "EOPNOTSUPP"): OWN_OBJECT,
    ("mlx5dv_devx_subscribe_devx_event*", "EOPNOTSUPP"): "only contexts of this provider have channels",
    ("mlx5dv_devx_umem_reg", "EBADF"): "of a dma-buf",
    ("mlx5dv_devx_umem_dereg", "EFAULT EBADF EOPNOTSUPP"): "of registering; " + OWN_OBJECT,
    ("mlx5dv_get_clock_info", "EINVAL"): "of kernels that share no clock page",
    ("mlx5dv_get_clock_info", "EBUSY"): "of a kernel that updates its clock page without end",
    ("mlx5dv_get_data_direct_sysfs_path", "ENOSPC"): "of a device that has such a function",
    ("mlx5dv_map_ah_to_qp", "EAGAIN"): "all mappings would have to be taken",
    ("mlx5dv_open_device", "EACCES ENODEV"): "of device nodes in /dev",
    ("mlx5dv_reserved_qpn_alloc", "EAGAIN"): "all QP numbers of the machine would have to be taken",
    ("mlx5dv_reserved_qpn_dealloc", "EAGAIN"): "of taking a number",
    ("mlx5dv_sched_*_modify", "EOPNOTSUPP"): "what the device could not do was refused when the element was made",
    ("mlx5dv_sched_*_destroy", "EOPNOTSUPP"): OWN_OBJECT,
    ("mlx5dv_sched_*_modify", "EAGAIN"): "of making an element",
    ("mlx5dv_sched_*_destroy", "EAGAIN"): "of making an element",
}
CASE = re.compile(r"\bCASE\((mlx5dv_\w+), (E[A-Z0-9]+),")
PROTOTYPE = re.compile(r"^(?:static inline )?((?:const )?\w[\w ]*[ *]+(mlx5dv_\w+)\([^)]*\))\s*[;{]", re.M)
SECTIONS = ("SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "RETURN VALUE", "ERRORS", "EMULATED NIC", "EXAMPLE", "SEE ALSO")
INCLUDES = """#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <infiniband/mlx5dv.h>
"""


def squeeze(text):
    """C text without the blanks that have no meaning."""
    return re.sub(r"\s*([^\w\s])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def declared():
    """name -> prototype, of the headers whose functions must have pages."""
    found = {}
    for header in COVERED:
        for prototype, name in PROTOTYPE.findall((HEADERS / header).read_text()):
            found[name] = squeeze(prototype)
    return found


def blocks(part):
    """The literal blocks of a section."""
    for match in re.finditer(r"::\n\n((?:(?: {4}.*)?\n)+)", part):
        yield re.sub(r"^ {4}", "", match.group(1), flags=re.M).rstrip() + "\n"


class ManualPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = man.pages()
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = man.build(pathlib.Path(cls.folder.name) / "man")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def functions(self):
        return [page for page in self.pages if page.section == "3"]

    def test_every_function_has_one_page(self):
        documented = [name for page in self.functions() for name in page.functions()]
        self.assertEqual([], sorted(set(declared()) - set(documented)), "no page")
        self.assertEqual([], sorted(n for n in set(documented) if documented.count(n) > 1), "two pages")

    def test_synopsis_is_the_header(self):
        known = declared()
        for page in self.functions():
            shown = squeeze(page.part("SYNOPSIS"))
            for name in page.functions():
                self.assertIn(name, known, page.path.name)
                self.assertIn(known[name], shown, f"{page.path.name}: {name} is declared otherwise")

    def test_structures_are_those_of_the_header(self):
        text = squeeze("\n".join((HEADERS / h).read_text() for h in COVERED))
        for page in self.functions():
            for block in blocks(page.text.split("\nEXAMPLE\n")[0]):
                for shown in re.findall(r"^(?:struct|enum) \w+ \{.*?^\};", block, re.M | re.S):
                    self.assertIn(squeeze(shown), text, page.path.name)

    def test_every_page_has_its_sections_in_order(self):
        for page in self.functions():
            titles = [t for t in re.findall(r"^([A-Z][A-Z ]+)\n=+$", page.text, re.M) if t in SECTIONS]
            self.assertEqual(list(SECTIONS), titles, page.path.name)

    def test_references_lead_somewhere(self):
        here = {(name, page.section) for page in self.pages for name in page.functions() + [page.name]}
        for page in self.pages:
            for name, section in re.findall(r"\b(mlx5dv\w*|verbena[\w-]*)\((\d)\)", page.text):
                self.assertIn((name, section), here, page.path.name)
            for path in re.findall(r"``(docs/[\w./]+)``", page.text):
                self.assertTrue((ROOT / path).is_file(), f"{page.path.name}: {path}")

    def test_what_is_not_implemented_is_said(self):
        missing = man.refused()
        self.assertTrue(missing)
        for page in self.functions():
            absent = [name for name in page.functions() if name in missing]
            text = man.status(page, missing)
            self.assertEqual(bool(absent), "\nSTATUS\n======\n" in text, page.path.name)
            if absent != page.functions():
                for name in absent:
                    self.assertIn(f"``{name}()``", text.split("\nSTATUS\n")[1].split("EOPNOTSUPP")[0])

    def documented_errors(self):
        """Every (function, errno) of the pages; what is not implemented has but one errno."""
        missing, prototypes = man.refused(), declared()
        for page in self.functions():
            rows = " ".join(re.findall(r"^(?!ERRORS$)E[A-Z0-9, ]+$", page.part("ERRORS"), re.M))
            errors = re.findall(r"\bE[A-Z0-9]+\b", rows)
            for name in page.functions():
                if re.match(r"(static inline )?void\b(?!\*)", prototypes[name]):
                    continue
                for error in ["EOPNOTSUPP"] if name in missing else errors:
                    yield name, error

    def test_every_error_of_every_function_has_a_case(self):
        """What ERRORS lists, tests/programs/dv_errors*.cc provoke, function by function."""
        cases = set()
        for source in (ROOT / "tests" / "programs").glob("dv_errors*.cc"):
            cases |= set(CASE.findall(source.read_text()))
        documented = set(self.documented_errors())
        excused, used = set(), set()
        for (name, errors), _ in UNPROVOKED.items():
            for error in errors.split():
                of_it = {pair for pair in documented - cases if fnmatch.fnmatchcase(pair[0], name) and pair[1] == error}
                excused |= of_it
                if of_it:
                    used.add((name, error))
        self.assertEqual([], sorted(documented - cases - excused), "no case")
        rows = {(name, error) for name, errors in UNPROVOKED for error in errors.split()}
        self.assertEqual([], sorted(rows - used), "superfluous excuses")
        functions = {name for name, _ in documented}
        self.assertEqual([], sorted(pair for pair in cases - documented if pair[0] in functions), "not in the page")

    def test_every_function_is_shown_at_work(self):
        """The table in docs/devx.md: a test that uses it and looks at the effect, of functions that are there."""
        shown = {}
        table = (ROOT / "docs" / "devx.md").read_text().split("## Where each call is shown at work")[1].split("\n## ")[0]
        for path, calls in re.findall(r"^\| `([\w./]+)` \| (.*) \|$", table, re.M):
            text = (ROOT / path).read_text()
            for name in re.findall(r"`(\w+)`", calls):
                shown["mlx5dv_" + name] = re.search(rf"\bmlx5dv_{name}\b", text) is not None
        self.assertEqual([], sorted(name for name, there in shown.items() if not there), "not in its file")
        self.assertEqual([], sorted(set(declared()) - set(shown) - set(man.refused())), "not in the table")

    def test_examples_compile(self):
        unit = [INCLUDES]
        for page in self.functions():
            code = list(blocks(page.part("EXAMPLE")))
            self.assertTrue(code, f"{page.path.name}: no example")
            for block in code:
                first = block.splitlines()[0]
                line = page.text[: page.text.index(first, page.text.index("\nEXAMPLE\n"))].count("\n") + 1
                unit.append(f'#line {line} "{page.path.relative_to(ROOT)}"\n{block}')
        command = ["gcc", "-x", "c", "-std=gnu17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
                   f"-I{ROOT / 'include'}", "-"]
        done = subprocess.run(command, input="\n".join(unit), text=True, capture_output=True, timeout=240)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_pages_render_without_warning(self):
        self.assertEqual(len(self.pages), len(self.files))
        # One groff for all; man(1), which starts a dozen processes a page, for one.
        runs = [(["groff", "-man", "-Tutf8", "-ww", "-z"], self.files)]
        if shutil.which("man"):
            runs.append((["man", "--warnings=w", "-l"], self.files[:1]))
        environment = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80", MAN_KEEP_STDERR="1", MANPAGER="cat")
        for tool, files in runs:
            done = subprocess.run(tool + [str(f) for f in files], text=True, capture_output=True, timeout=240,
                                  env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
            self.assertEqual((0, ""), (done.returncode, done.stderr), tool[0])

    def test_pages_of_the_program_name_every_option(self):
        if not VERBENA:
            self.skipTest("give the path of the verbena program")
        for command, name in (([], "verbena"), (["devices"], "verbena"), (["explain"], "verbena"), (["port"], "verbena"), (["run"], "verbena-run")):
            shown = subprocess.run([VERBENA, *command, "--help"], text=True, capture_output=True, timeout=60).stdout
            text = (man.SOURCES / f"{name}.1.rst").read_text()
            for option in re.findall(r"--\w[\w-]*", shown.split("Options:")[1].split("Examples:")[0]):
                self.assertIn(option, text, f"{name}.1.rst")
            for subcommand in re.findall(r"^  (\w+) {5,}", (shown.split("Subcommands:") + [""])[1], re.M):
                self.assertRegex(text, rf"verbena[ -]{subcommand}\b")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        VERBENA = sys.argv.pop(1)
    unittest.main()

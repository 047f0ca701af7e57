"""Makes the manual pages: docs/man/NAME.SECTION.rst -> build/docs/man/manSECTION/NAME.SECTION, by docutils.

A page serves every function of its SYNOPSIS; the others are links to it. What this version does not implement is not
written in the sources: it is read from src/mlx5/dv/refused_*.cc and becomes the section STATUS of the page.
"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "man"
OUTPUT = ROOT / "build" / "docs" / "man"
REFUSED = "src/mlx5/dv/refused_*.cc"
FUNCTION = re.compile(r"\b(mlx5dv_\w+)\(")
REFERENCE = re.compile(r"(?<![\w`*])([a-z][\w-]*)\(([1-8])\)")  # ibv_open_device(3)


class Page:
    def __init__(self, path):
        self.path = path
        self.name, self.section = path.name.removesuffix(".rst").rsplit(".", 1)
        self.text = path.read_text()

    def part(self, title):
        """The text of a section, or nothing."""
        match = re.search(rf"^{title}\n=+\n(.*?)(?=^[A-Z][A-Z ]+\n=+\n|\Z)", self.text, re.M | re.S)
        return match.group(1) if match else ""

    def functions(self):
        """The functions that SYNOPSIS declares, in its order."""
        return list(dict.fromkeys(FUNCTION.findall(self.part("SYNOPSIS"))))


def pages():
    return [Page(path) for path in sorted(SOURCES.glob("*.rst"))]


def refused(root=ROOT):
    """Functions whose whole body is to say "not on this device"."""
    names = set()
    for path in root.glob(REFUSED):
        for declaration in path.read_text().split("VERBENA_MLX5_EXPORT")[1:]:
            names.add(re.search(r"\b_*(mlx5dv_\w+)\(", declaration).group(1))
    return names


def status(page, missing):
    absent = [name for name in page.functions() if name in missing]
    if not absent:
        return page.text
    if absent == page.functions():
        sentence = "This function is" if len(absent) == 1 else "None of these functions is"
        sentence += " not" * (len(absent) == 1) + " implemented in this version."
    else:
        names = ", ".join(f"``{name}()``" for name in absent)
        sentence = f"{names} {'is' if len(absent) == 1 else 'are'} not implemented in this version."
    section = (f"STATUS\n======\n\n{sentence} A call changes nothing and fails with EOPNOTSUPP, in the way that RETURN VALUE "
               "says; a function that returns nothing does nothing.\n\n")
    before = re.search(r"^(?:ERRORS|EMULATED NIC|EXAMPLE|SEE ALSO)\n=", page.text, re.M)
    return page.text[: before.start()] + section + page.text[before.start():]


def render(page, missing):
    from docutils.core import publish_string
    from docutils.writers import manpage

    text = REFERENCE.sub(r"**\1**\\ (\2)", status(page, missing))
    roff = publish_string(text, writer=manpage.Writer(), source_path=str(page.path), settings_overrides={
        "output_encoding": "unicode", "halt_level": 2, "report_level": 2, "input_encoding": "unicode"})
    names = page.functions() or [page.name]
    if page.name in names:
        names.remove(page.name)
    names.insert(0, page.name)
    roff = re.sub(r"^(\.SH NAME\n)\S+ ", lambda m: m.group(1) + ", ".join(names) + " ", roff, count=1, flags=re.M)
    # Identifiers are not to be broken, nor lines stretched.
    return re.sub(r"^(\.TH .*\n)", r"\1.nh\n.ad l\n", roff, count=1, flags=re.M)


def build(output=OUTPUT):
    """Renders every page; returns the files, links left out."""
    shutil.rmtree(output, ignore_errors=True)
    missing = refused()
    files = []
    for page in pages():
        folder = output / f"man{page.section}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{page.name}.{page.section}"
        file.write_text(render(page, missing))
        files.append(file)
        for other in page.functions():
            if other != page.name:
                (folder / f"{other}.{page.section}").symlink_to(file.name)
    return files


def main():
    try:
        import docutils  # noqa: F401
    except ImportError:
        print("man pages need python3-docutils: ./dev setup", file=sys.stderr)
        return 1
    files = build()
    print(f"{len(files)} manual pages in {OUTPUT.relative_to(ROOT)}: man -M {OUTPUT.relative_to(ROOT)} mlx5dv")
    return 0


if __name__ == "__main__":
    sys.exit(main())

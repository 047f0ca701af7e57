"""House rules as code. Run by `./dev lint`; prints one line a problem and exits 1 if there is any.

  layers   #include arrows of docs/ARCHITECTURE.md: only downward
  headers  every header of src/ and include/ compiles alone (results cached by the content it depends on)
  size     no source over 600 lines
  quiet    libraries do not print, abort, exit, throw or assert
  text     no trailing blanks, no tabs, no line over 160 columns (120 is what the formatter aims at), no path of somebody's machine
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES_MAX = 600
COLUMNS_MAX = 160
TABLE_COLUMNS_MAX = 170  # rows of X-macro tables, where a sentence stands beside its number

# folder -> folders it may include besides itself; "folder/file.h" allows just that header.
LAYERS = {
    "support": [],
    "prm": ["support"],
    "uverbs": ["prm", "support"],
    "fabric": ["prm", "support"],
    "device": ["fabric", "prm", "support"],
    "kernel": ["uverbs", "device/device.h", "device/profile.h", "device/memory/guard.h", "device/track.h",
               "prm", "support"],
    "nic": ["kernel", "device", "uverbs", "fabric", "prm", "support"],
    "verbs": ["uverbs", "prm", "support"],
    "mlx5": ["verbs", "uverbs", "prm", "support"],
    "preload": ["uverbs", "support"],
    "cli": ["nic", "kernel", "device", "fabric", "uverbs", "prm", "support"],
}
PROGRAMS = {"cli"}  # may print and exit
_CALLS = "printf fprintf puts putchar perror abort exit _Exit quick_exit assert std::cout std::cerr".replace(" ", "|")
NOISY = re.compile(rf"\b({_CALLS})\b\s*(\(|<<)")
THROW = re.compile(r"\bthrow\b\s*[^;(]*\(")
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|home|root|Users)/\w")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
SOURCES = {".h", ".cc", ".c"}
TEXTS = SOURCES | {".py", ".md", ".rst", ".sh", ".txt", ".cmake", ".toml", ".map", ".json", ""}


def tracked():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True,
                         capture_output=True, check=True)
    return [p for p in (pathlib.Path(line) for line in out.stdout.splitlines()) if (ROOT / p).is_file()]


def strip_comments(text):
    """The code alone, line structure kept: comments and string literals are blanked."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group()[0] == "/" else '""', text)


def check_layers(path, text):
    layer = path.parts[1]
    if layer not in LAYERS:
        yield f"{path}:1: layers: folder src/{layer} is not in docs/ARCHITECTURE.md"
        return
    allowed = LAYERS[layer] + [layer]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        if target.split("/")[0] in LAYERS and not any(target == a or target.startswith(a + "/") for a in allowed):
            yield f"{path}:{number}: layers: {layer} may not include {target}"


def check_quiet(path, text):
    if path.parts[1] in PROGRAMS:
        return
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        match = NOISY.search(line) or THROW.search(line)
        if match and "static_assert" not in line:
            yield f"{path}:{number}: quiet: a library may not call {match.group().rstrip('( <')}"


def check_text(path, text):
    lines = text.splitlines()
    if path.suffix in SOURCES | {".py"} and len(lines) > LINES_MAX:
        yield f"{path}:1: size: {len(lines)} lines; {LINES_MAX} is the most"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield f"{path}:{number}: text: trailing blanks"
        if path.suffix in SOURCES | {".py"}:
            if "\t" in line:
                yield f"{path}:{number}: text: tab"
            if len(line) > (TABLE_COLUMNS_MAX if line.lstrip().startswith("X(") else COLUMNS_MAX):
                yield f"{path}:{number}: text: {len(line)} columns; {COLUMNS_MAX} is the most"
        if MACHINE_PATH.search(line) and path.name != "lint.py":
            yield f"{path}:{number}: text: names a path of one machine"


class HeaderCheck:
    """Compiles each header by itself, remembering those whose inputs have not changed since they last passed."""

    def __init__(self):
        self.cache_file = ROOT / "build" / "lint-headers.json"
        try:
            self.cache = json.loads(self.cache_file.read_text())
        except (OSError, ValueError):
            self.cache = {}
        self.fresh = {}

    @staticmethod
    def digest(paths):
        whole = hashlib.sha256()
        for path in paths:
            try:
                whole.update((ROOT / path).read_bytes())
            except OSError:
                return ""
        return whole.hexdigest()

    def check(self, path):
        known = self.cache.get(str(path))
        if known and known["digest"] == self.digest(known["inputs"]):
            self.fresh[str(path)] = known
            return None
        in_c = path.parts[:2] == ("include", "infiniband")
        language = ["-x", "c", "-std=gnu17"] if in_c else ["-x", "c++", "-std=gnu++23"]
        compiler = "gcc" if in_c else "g++"
        command = [compiler, *language, "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Wno-unused-function",
                   "-Isrc", "-Iinclude", "-fsyntax-only", "-MMD", "-MF", "/dev/stdout", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            return f"{path}:1: headers: does not compile alone: {first}"
        inputs = [w for w in done.stdout.replace("\\\n", " ").split()[1:] if not w.startswith("/")]
        inputs = sorted({os.path.normpath(w) for w in inputs} | {str(path)})
        self.fresh[str(path)] = {"inputs": inputs, "digest": self.digest(inputs)}
        return None

    def run(self, headers):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = [p for p in pool.map(self.check, headers) if p]
        self.cache_file.parent.mkdir(exist_ok=True)
        self.cache_file.write_text(json.dumps(self.fresh))
        return problems


def main():
    problems = []
    headers = []
    files = tracked()
    for path in files:
        if path.suffix not in TEXTS or path.name == "LICENSE" or "corpus" in path.parts:
            continue
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        problems += check_text(path, text)
        if path.suffix in SOURCES and path.parts[0] == "src":
            problems += check_layers(path, text)
            problems += check_quiet(path, text)
        if path.suffix == ".h" and path.parts[0] in ("src", "include"):
            headers.append(path)
    problems += HeaderCheck().run(headers)
    print("\n".join(problems) if problems else f"lint: {len(files)} files, {len(headers)} headers, no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

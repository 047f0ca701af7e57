"""A program made for the distribution's libraries runs unchanged on ours: compiled with its headers, linked with its
libibverbs and libmlx5, run with `verbena run`.

  ctest -R programs.distro      or:  python3 tests/programs/test_distro.py BUILD
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from harness import Bench  # noqa: E402

BUILD = None
HEADER = pathlib.Path("/usr/include/infiniband/mlx5dv.h")


def run(*argv, seconds=200):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(HEADER.exists(), "the system has no infiniband/mlx5dv.h")
class Distribution(unittest.TestCase):
    def made(self, source, folder):
        """Nothing of ours but the tables of layouts, which are headers, is in it."""
        program = pathlib.Path(folder) / source.stem
        compiler = ["g++", "-std=c++23", f"-DVERBENA_SOURCE_DIR=\"{ROOT}\""] if source.suffix == ".cc" else ["gcc"]
        code, said = run(*compiler, "-O1", "-I/usr/include", f"-I{ROOT / 'src'}", "-o", program, source, "-libverbs", "-lmlx5")
        self.assertEqual(0, code, said)
        needed = run("readelf", "-d", program)[1]
        self.assertIn("libmlx5.so.1", needed)
        self.assertNotIn("RUNPATH", needed)
        return program

    def test_programs_run_unchanged(self):
        for name in ("handwritten.c", "devx.cc"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                program = self.made(HERE / name, folder)
                with Bench(pathlib.Path(BUILD).name) as bench:  # has what a program lacks that no sanitizer is in
                    end = bench.run([str(program)], 200)
                self.assertEqual(0, end.code, end.output)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()

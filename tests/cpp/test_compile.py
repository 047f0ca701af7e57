"""The C++ interface and the examples compile as C++20 and C++23, with our headers and with the system's, from the tree and as
installed; and mistakes do not compile.

  ctest -R cpp.compile      or:  python3 tests/cpp/test_compile.py BUILD
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = None
MISTAKES = 9


def compiles(source, standard, *options):
    done = subprocess.run(["g++", f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *options, str(source)],
                          capture_output=True, text=True, timeout=200)
    return done.returncode == 0, done.stderr


class Interface(unittest.TestCase):
    def test_as_installed_with_the_systems_headers(self):
        if not pathlib.Path("/usr/include/infiniband/mlx5dv.h").exists():
            self.skipTest("the system has no infiniband/mlx5dv.h")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", folder, "--component", "api"], check=True, timeout=100,
                           capture_output=True)
            for standard in ("c++20", "c++23"):
                for source in (ROOT / "tests" / "cpp" / "api.cc", *sorted((ROOT / "examples").glob("*.cc"))):
                    good, said = compiles(source, standard, f"-I{folder}/include")
                    self.assertTrue(good, f"{source.name}: {said}")

    def test_mistakes_do_not_compile(self):
        source = ROOT / "tests" / "cpp" / "wrong.cc"
        for wrong in range(MISTAKES + 1):
            good, said = compiles(source, "c++20", f"-I{ROOT / 'include'}", f"-DWRONG={wrong}")
            self.assertEqual(wrong == 0, good, f"mistake {wrong}: {said}")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()

"""The examples, as a newcomer runs them: two processes, judged by their captures.

  ctest -R examples      or:  python3 tests/conformance/test_examples.py [preset]
"""
import shutil
import sys
import tempfile
import unittest

import suite_host
from harness import Bench

PRESET = "dev"


class Examples(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tshark"), "tshark reads the captures")
    def test_examples(self):
        with Bench(PRESET) as bench, tempfile.TemporaryDirectory() as folder:
            for result in suite_host.example_cases(bench, folder):
                with self.subTest(result["name"]):
                    self.assertEqual("passed", result["status"], result["reason"])


if __name__ == "__main__":
    PRESET = sys.argv.pop(1) if len(sys.argv) > 1 else PRESET
    unittest.main()

"""Runs the cases of one pyverbs test module that have not been run yet, writing one JSON line as each begins and ends.

pyverbs_driver.py TESTS_FOLDER MODULE JOURNAL [PATTERN]: started by suite_pyverbs.py in a fresh process; when a case crashes
or hangs the process, the journal tells which, and the next process goes on behind it. PATTERN is looked for in CLASS.CASE.

With VERBENA_RECORD in the environment the cases announce themselves in that file as well, and random numbers are those of
the case's name: two runs are to be comparable.
"""
import json
import multiprocessing
import os
import random
import re
import sys
import time
import unittest
from importlib.machinery import SourceFileLoader


class Journal(unittest.TestResult):
    def __init__(self, stream):
        super().__init__()
        self.stream = stream
        self.began = 0.0
        self.noted = False

    def note(self, test, status, reason=""):
        self.noted = True
        entry = {"name": test.id(), "status": status, "reason": reason, "seconds": time.monotonic() - self.began}
        self.stream.write(json.dumps(entry) + "\n")
        self.stream.flush()

    def startTest(self, test):
        super().startTest(test)
        if record := os.environ.get("VERBENA_RECORD"):
            random.seed(test.id())
            with open(record, "a") as lines:
                lines.write(json.dumps({"call": "case", "name": test.id()}) + "\n")
        self.began, self.noted = time.monotonic(), False
        self.stream.write(json.dumps({"name": test.id(), "status": "begun"}) + "\n")
        self.stream.flush()

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed", str(err[1]))

    def addExpectedFailure(self, test, err):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "expected to fail, and did not")


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def main(folder, module, journal, pattern="."):
    multiprocessing.set_start_method("fork")  # which the tests were written for; from Python 3.14 on it must be said
    sys.path.insert(0, folder)
    os.chdir(folder)
    done = set()
    if os.path.exists(journal):
        with open(journal) as lines:
            done = {json.loads(line)["name"] for line in lines}
    sys.argv[1:] = []
    from args_parser import parser
    parser.parse_args()
    tests = SourceFileLoader("tests", os.path.join(folder, "__init__.py")).load_module()
    del tests
    loaded = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["tests." + module])
    wanted = (test for test in flatten(loaded) if re.search(pattern, test.id().split(module + ".", 1)[1]))
    suite = unittest.TestSuite(test for test in wanted if test.id() not in done)
    with open(journal, "a") as stream:
        suite.run(Journal(stream))


if __name__ == "__main__":
    main(*sys.argv[1:5])

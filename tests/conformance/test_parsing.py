"""The runners' own tests: what they read out of other programs' output."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[2] / "tools")]
import harness  # noqa: E402
import suite_perftest  # noqa: E402
import suite_pyverbs  # noqa: E402


class Parsing(unittest.TestCase):
    def test_perftest_rows(self):
        output = ("---\n #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
                  " 65536      5000             21003.24            20911.90             0.334590\n---\n")
        self.assertEqual(suite_perftest.result_rows(output), [[65536, 5000, 21003.24, 20911.90, 0.334590]])

    def test_matrix_has_every_connection_and_no_duplicate(self):
        whole = [(p, c, tuple(o)) for p, c, o in suite_perftest.cases(False)]
        self.assertEqual(len(whole), len(set(whole)))
        self.assertEqual({(p, c) for p, c, _ in whole},
                         {(p, c) for p, cs in suite_perftest.CONNECTIONS.items() for c in cs})
        self.assertLess(len(list(suite_perftest.cases(True))), len(whole) / 3)

    def test_pair_problem_names_the_side(self):
        good = harness.Finished([], 0, "fine", 1)
        self.assertEqual(harness.pair_problem(good, good), "")
        self.assertIn("client died of signal 11", harness.pair_problem(good, harness.Finished([], -11, "", 1)))
        self.assertIn("server ran out of time", harness.pair_problem(harness.Finished([], None, "", 1), good))

    def test_skips_need_a_reason(self):
        skip = {"name": "test_qp.QPTest.test_create_ud_qp_no_attr", "status": "skipped", "reason": "because"}
        self.assertEqual(suite_pyverbs.judge(skip)["status"], "failed")
        odp = {"name": "test_odp.OdpTestCase.test_odp_rc_traffic", "status": "skipped", "reason": "x"}
        self.assertEqual(suite_pyverbs.judge(odp)["status"], "skipped")

    def test_journal_tells_where_a_module_crashed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "journal"
            lines = [("a", "begun"), ("a", "passed"), ("b", "begun")]
            path.write_text("".join(json.dumps({"name": n, "status": s}) + "\n" for n, s in lines))
            entries = suite_pyverbs.read_journal(path)
            self.assertEqual([entries["a"]["status"], entries["b"]["status"]], ["passed", "begun"])

    def test_processes_are_ended_in_time(self):
        end = harness.Process(["sleep", "60"], None).wait(0.2)
        self.assertIsNone(end.code)
        self.assertLess(end.seconds, 5)


if __name__ == "__main__":
    unittest.main()

"""The comparison of records itself: what it must not see, and what it must."""
import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import request_record  # noqa: E402


def request(method, attrs, thread=1, **more):
    return {"process": 1, "thread": thread, "call": "ioctl", "fd": 6, "object": "X", "method": method, "errno": 0,
            "attrs": attrs, **more}


def program(buffer=0x7f0000000000, cq=0, channel=8, psn=5):
    """A CQ that uses a channel, a QP that uses the CQ, its way to a peer, and the end of both."""
    return [
        {"process": 1, "thread": 1, "call": "start", "program": "p"},
        request("INVOKE_WRITE", {"CORE_OUT": {"room": 4, "struct": "s", "fields": {"fd": channel}}}, command="CHANNEL"),
        request("CQ_CREATE", {"HANDLE": {"new handle": cq}, "CHANNEL": {"fd": channel}, "CQE": {"len": 4, "value": 100},
                              "UHW_IN": {"len": 40, "struct": "mlx5_ib_create_cq", "fields": {
                                  "buf_addr": hex(buffer), "db_addr": hex(buffer + 4096), "cqe_size": 64}}}),
        request("QP_CREATE", {"HANDLE": {"new handle": cq + 1}, "SEND_CQ": {"handle": cq}, "RECV_CQ": {"handle": cq}}),
        request("INVOKE_WRITE", {"CORE_IN": {"len": 120, "struct": "ib_uverbs_modify_qp", "fields": {
            "qp_handle": cq + 1, "rq_psn": psn, "qp_state": 2, "dest.dgid": "fe80"}}}, command="MODIFY_QP"),
        request("QP_DESTROY", {"HANDLE": {"handle": cq + 1}}),
        request("CQ_DESTROY", {"HANDLE": {"handle": cq}, "RESP": {"room": 8, "struct": "s", "fields": {"comp": 0}}}),
    ]


def lines(ours, theirs):
    return request_record.differences(ours, theirs).get("", [])


class Comparison(unittest.TestCase):
    def test_numbers_of_a_run_do_not_matter(self):
        self.assertEqual(lines(program(), program()), [])
        self.assertEqual(lines(program(), program(buffer=0x550000000000, cq=30, channel=11, psn=99)), [])

    def test_results_do_not_matter_but_their_room_does(self):
        ours = program()
        ours[-1]["attrs"]["RESP"]["fields"]["comp"] = 7
        self.assertEqual(lines(ours, program()), [])
        ours[-1]["attrs"]["RESP"]["room"] = 4
        self.assertEqual(lines(ours, program()), ["X CQ_DESTROY: RESP.room: 4, not 8"])

    def changed(self, index, attribute, name, value, fields=False):
        ours = program()
        target = ours[index]["attrs"][attribute]
        (target["fields"] if fields else target)[name] = value
        return lines(ours, program())

    def test_a_field_that_differs(self):
        self.assertEqual(self.changed(2, "UHW_IN", "cqe_size", 128, True), ["X CQ_CREATE: UHW_IN.cqe_size: 128, not 64"])
        self.assertEqual(self.changed(2, "CQE", "value", 101), ["X CQ_CREATE: CQE.value: 101, not 100"])
        self.assertEqual(self.changed(2, "CQE", "len", 8), ["X CQ_CREATE: CQE.len: 8, not 4"])

    def test_a_pointer_that_is_null_or_one_that_is_used_twice(self):
        self.assertEqual(self.changed(2, "UHW_IN", "db_addr", "0x0", True),
                         ["X CQ_CREATE: UHW_IN.db_addr: 0, not address 2"])
        self.assertEqual(self.changed(2, "UHW_IN", "db_addr", "0x7f0000000000", True),
                         ["X CQ_CREATE: UHW_IN.db_addr: address 1, not address 2"])

    def test_another_object(self):
        self.assertEqual(self.changed(3, "RECV_CQ", "handle", 9),
                         ["X QP_CREATE: RECV_CQ.handle: handle unknown 9, not handle 1"])
        self.assertEqual(self.changed(4, "CORE_IN", "qp_handle", 0, True),
                         ["X INVOKE_WRITE MODIFY_QP: CORE_IN.qp_handle: handle 1, not handle 2"])

    def test_an_attribute_more_or_less(self):
        ours = program()
        del ours[2]["attrs"]["CHANNEL"]
        self.assertEqual(lines(ours, program()), ["X CQ_CREATE: CHANNEL.fd: none, not fd 1"])

    def test_where_commands_differ(self):
        ours, theirs = program(), program()
        for lines_, text in ((ours, "00" * 20 + "0102"), (theirs, "00" * 20 + "0103" + "00" * 8)):
            lines_[3]["attrs"]["CMD"] = {"len": 22, "bytes": text}
        self.assertEqual(lines(ours, theirs), ["X QP_CREATE: CMD.bytes at byte 20: 0102, not 01030000"])

    def test_objects_destroyed_together_have_no_order(self):
        ours, theirs = program(), program()
        for some, order in ((ours, (2, 3)), (theirs, (3, 2))):
            some[2:2] = [request("PD_CREATE", {"HANDLE": {"new handle": n}}) for n in (2, 3)]
            some += [request("PD_DESTROY", {"HANDLE": {"handle": n}}) for n in order]
        self.assertEqual(lines(ours, theirs), [])
        ours[-1]["attrs"]["HANDLE"]["handle"] = 2
        self.assertEqual(lines(ours, theirs), ["X PD_DESTROY: HANDLE.handle: handle 1, not handle 2"])

    def test_a_request_more_or_less_and_another_order(self):
        ours, theirs = program(), program()
        del ours[4]
        self.assertEqual(lines(ours, theirs), ["X INVOKE_WRITE MODIFY_QP: missing"])
        self.assertEqual(lines(theirs, ours), ["X INVOKE_WRITE MODIFY_QP: not issued by the other"])
        ours = program()
        ours[5], ours[6] = ours[6], ours[5]
        self.assertNotEqual(lines(ours, theirs), [])

    def test_the_errno(self):
        ours = program()
        ours[5]["errno"] = 16
        self.assertEqual(lines(ours, program()), ["X QP_DESTROY: errno: 16, not 0"])

    def test_threads_and_cases(self):
        ours = program() + [dict(copy.deepcopy(line), thread=2) for line in program(cq=40)]
        self.assertEqual(lines(ours, program()), ["2 threads, not 1"])
        case = [{"call": "case", "name": "two"}, request("PD", {})]
        self.assertEqual(request_record.differences(program() + case, program()),
                         {"two": ["1 threads, not 0"]})

    def test_explanations(self):
        table = [{"what": "A: missing", "why": "because"}, {"what": "B: .*", "why": "so", "programs": "^ping"}]
        self.assertEqual(request_record.explain(["A: missing", "C: missing"], table, "p"), (["C: missing"], table[:1]))
        self.assertEqual(request_record.explain(["B: 1, not 2"], table, "p"), (["B: 1, not 2"], []))
        self.assertEqual(request_record.explain(["B: 1, not 2"], table, "ping"), ([], table[1:]))

    def test_sorts_of_requests_in_any_order_and_number(self):
        again = program(cq=30)
        for line in again:
            line["process"], line["thread"] = 2, 7
        twice = program()[:4] + again + program()[4:]
        twice.append(request("QP_CREATE", {"HANDLE": {"new handle": 9}, "SEND_CQ": {"handle": 0}, "RECV_CQ": {"handle": 0}}))
        self.assertEqual(request_record.sorts_differences(twice, program()), [])
        self.assertEqual(request_record.sorts_differences(program(), twice), [])

    def test_sorts_of_requests_that_differ(self):
        def differ(ours):
            return request_record.sorts_differences(ours, program())

        self.assertEqual(differ(program()[:5] + program()[6:]), ["X QP_DESTROY: missing"])
        more = program()
        more.append(request("QP_CREATE", {"QP_TYPE": {"len": 8, "value": 255}}))
        self.assertEqual(differ(more), ["X QP_CREATE of type 255: not issued by the other"])
        ours = program()
        ours[5]["attrs"]["HANDLE"]["handle"] = 0  # the CQ's
        self.assertEqual(differ(ours), ["X QP_DESTROY: HANDLE.handle: handle of X CQ_CREATE, not handle of X QP_CREATE"])
        ours = program()
        ours[2]["attrs"]["UHW_IN"]["fields"]["cqe_size"] = 128
        self.assertEqual(differ(ours), ["X CQ_CREATE: UHW_IN.cqe_size: 128, not 64"])


if __name__ == "__main__":
    unittest.main()

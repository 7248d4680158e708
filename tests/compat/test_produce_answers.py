"""Crafted record sets over the wire: the broker answers each as Apache Kafka 4.3.1 answered it."""

import time

from tests.unit.records.ask_apache import ask_all
from tests.unit.records.produce_cases import all_cases
from tests.unit.records.test_check_as_apache import ANSWERS, DEVIATIONS, OF_THE_REQUEST


def test_record_sets_are_refused_and_accepted_as_by_apache(bootstrap, unique):
    cases = all_cases(time.time_ns() // 1_000_000)
    for name in OF_THE_REQUEST:
        del cases[name]
    answers = ask_all(bootstrap, unique("sets") + "-", cases)
    different = {}
    for name, answer in answers.items():
        expected = ANSWERS[name]
        codes = (expected["error_code"], int(DEVIATIONS.get(name, expected["error_code"])))
        refused = [index for index, _ in answer.get("record_errors", ())]
        named = [index for index, _ in expected.get("record_errors", ())]
        if answer["error_code"] not in codes or (refused != named and name != "no-key-compacted-bad-deltas"):
            different[name] = (answer, expected)
    assert not different

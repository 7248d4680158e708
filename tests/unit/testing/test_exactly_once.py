"""Each violation that assert_exactly_once claims to find, planted."""

from odradek.client.partition_reader import ConsumerRecord
from odradek.testing.exactly_once import findings

NAMES = ("source", "sink", "group")


def records(*keys):
    return [ConsumerRecord("t", 0, i, 0, 0, key, b"v", (), 0) for i, key in enumerate(keys)]


def test_every_record_once_is_fine():
    assert findings(records(b"a", b"b"), records(b"b", b"a"), 0, NAMES) == []


def test_equal_source_records_must_come_as_often():
    assert findings(records(b"a", b"a"), records(b"a", b"a"), 0, NAMES) == []
    assert findings(records(b"a", b"a"), records(b"a"), 0, NAMES) == ["missing from sink: b'a'"]


def test_a_lost_record_is_named():
    assert findings(records(b"a", b"b"), records(b"a"), 0, NAMES) == ["missing from sink: b'b'"]


def test_a_duplicate_is_named_with_its_number():
    assert findings(records(b"a"), records(b"a", b"a", b"a"), 0, NAMES) == ["too many in sink: b'a' x2"]


def test_an_invented_record_is_named():
    assert findings(records(b"a"), records(b"a", b"x"), 0, NAMES) == ["too many in sink: b'x'"]


def test_what_the_group_has_not_read_counts():
    assert findings(records(b"a"), records(b"a"), 3, NAMES) == [
        "group group has not committed 3 of the records in source"
    ]


def test_without_keys_the_numbers_are_compared():
    assert findings(records(None, None), records(None, None), 0, NAMES) == []
    assert findings(records(None), records(None, None), 0, NAMES) == ["source has 1 records, sink has 2"]


def test_many_findings_are_cut_short():
    keys = [str(i).encode() for i in range(9)]
    (text,) = findings(records(*keys), [], 0, NAMES)
    assert text.endswith("and 4 more")

"""A leader accepts, refuses and rewrites crafted record sets as Apache Kafka 4.3.1 did."""

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.records import compression
from odradek.records.batch import LOG_APPEND_TIME, BatchMeta, iter_batches, iter_records
from odradek.records.check import CheckedRecords, CheckRules, check_produce
from tests.unit.log.support import LogRuntime, append, open_log
from tests.unit.records.produce_cases import TOPICS, Case, all_cases

APACHE = json.loads((Path(__file__).parent / "apache_answers.json").read_text())
NOW_MS: int = APACHE["now_ms"]
ANSWERS: dict[str, dict[str, Any]] = APACHE["answers"]
CASES = {
    name: Case(row["topic"], None if row["sent"] is None else bytes.fromhex(row["sent"]), row["version"])
    for name, row in ANSWERS.items()
}

# Where Apache fails inside itself, or stores what its own consumers cannot rely on, records are refused.
DEVIATIONS = {
    "null-records": ErrorCode.INVALID_RECORD,  # NullPointerException, never answered
    "length-14": ErrorCode.CORRUPT_MESSAGE,  # IndexOutOfBoundsException
    "length-huge": ErrorCode.INVALID_RECORD,  # integer overflow
    "varint-too-long": ErrorCode.INVALID_RECORD,  # IllegalArgumentException
    "offset-deltas-all-0": ErrorCode.INVALID_RECORD,  # stored with repeated offsets
    "offset-deltas-1-2-3": ErrorCode.INVALID_RECORD,  # stored with an offset beyond the batch
    "offset-deltas-reversed": ErrorCode.INVALID_RECORD,  # stored with descending offsets
    "offset-deltas-all-0-gzip": ErrorCode.INVALID_RECORD,  # UnsupportedOperationException
    "offset-deltas-reversed-gzip": ErrorCode.INVALID_RECORD,  # UnsupportedOperationException
    "offset-deltas-all-0-to-gzip": ErrorCode.INVALID_RECORD,  # rewritten
}
# The request's transactional id decides these, not its records.
OF_THE_REQUEST = {"transactional-without-id"}


def rules_of(topic: str) -> CheckRules:
    config = TOPICS[topic]
    rules = CheckRules(
        compacted=config.get("cleanup.policy") == "compact",
        max_message_bytes=int(config.get("max.message.bytes", 1048588)),
        timestamp_before_max_ms=int(config.get("message.timestamp.before.max.ms", (1 << 63) - 1)),
        timestamp_after_max_ms=int(config.get("message.timestamp.after.max.ms", 3_600_000)),
    )
    if "message.timestamp.type" in config:
        rules = rules._replace(timestamp_type=LOG_APPEND_TIME)
    if "compression.type" in config:
        name = config["compression.type"]
        rules = rules._replace(target_codec=compression.CODEC_IDS["none" if name == "uncompressed" else name])
    return rules


def check(case: Case, now_ms: int = NOW_MS) -> CheckedRecords | KafkaError:
    data = bytearray(case.records or b"")
    (result,) = check_produce([memoryview(data)], rules_of(case.topic), now_ms, case.version)
    return result


def test_every_case_was_put_to_apache() -> None:
    assert all_cases(NOW_MS).keys() == CASES.keys()
    assert DEVIATIONS.keys() <= CASES.keys()


@pytest.mark.parametrize("name", [n for n in CASES if n not in OF_THE_REQUEST])
def test_answer_is_apaches(name: str) -> None:
    answer = ANSWERS[name]
    result = check(CASES[name])
    code = result.code if isinstance(result, KafkaError) else ErrorCode.NONE
    assert code == DEVIATIONS.get(name, answer["error_code"])
    refused = result.records if isinstance(result, RecordError) else ()
    if name not in DEVIATIONS and CASES[name].version >= 8 and name != "no-key-compacted-bad-deltas":
        assert [index for index, _ in refused] == [index for index, _ in answer["record_errors"]]


@pytest.mark.parametrize(
    "name", [n for n, answer in ANSWERS.items() if answer["error_code"] == 0 and n not in DEVIATIONS]
)
def test_accepted_records_are_stored_as_apache_stored_them(name: str, tmp_path: Path) -> None:
    (stored,) = map(bytes.fromhex, ANSWERS[name]["stored"])
    (theirs,) = iter_batches(stored)
    now_ms = theirs.max_timestamp if theirs.timestamp_type == LOG_APPEND_TIME else NOW_MS
    result = check(CASES[name], now_ms)
    assert isinstance(result, CheckedRecords)
    (checked,) = result.batches
    assert next(iter_batches(result.buffer)) == checked
    log = open_log(LogRuntime(), tmp_path)
    append(log, result)
    assert log.log_end_offset == theirs.last_offset + 1
    written = Path(log.path, "00000000000000000000.log").read_bytes()
    (ours,) = iter_batches(written)
    if theirs.compression and theirs.compression != source_codec(CASES[name]):
        # Compressors differ in their bytes, not in what they hold.
        same: dict[str, int] = {"size": 0, "crc": 0}
        assert ours._replace(**same) == theirs._replace(**same)
        assert list(iter_records(written, ours)) == list(iter_records(stored, theirs))
    else:
        assert written == stored


def source_codec(case: Case) -> int:
    assert case.records is not None
    batch: BatchMeta = next(iter_batches(case.records))
    return batch.compression

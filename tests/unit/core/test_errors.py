"""What an error of Kafka's protocol says of itself."""

from odradek.core.errors import ErrorCode, KafkaError, RecordError, StorageError


def test_an_error_shows_its_code_where_it_happened_and_what_is_wrong() -> None:
    assert str(KafkaError(ErrorCode.MESSAGE_TOO_LARGE)) == "MESSAGE_TOO_LARGE"
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG: no such key"
    assert str(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, place="produce to t-0")) == (
        "MESSAGE_TOO_LARGE: produce to t-0"
    )
    refused = RecordError(ErrorCode.INVALID_RECORD, "no key", [(0, "")], place="produce to t-0")
    assert str(refused) == "INVALID_RECORD: produce to t-0: no key"
    assert str(StorageError("disk full")) == "KAFKA_STORAGE_ERROR: disk full"

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


def test_a_message_is_cut_before_it_is_too_long_for_the_wire() -> None:
    """A string of the older versions has at most 32,767 bytes, and a character has up to four."""
    message = KafkaError(ErrorCode.INVALID_CONFIG, "\N{GRINNING FACE}" * 40_000).message
    assert message is not None and message.endswith("...")
    assert len(message.encode()) < 32_767
    assert KafkaError(ErrorCode.INVALID_CONFIG, "no such key").message == "no such key"

"""The metadata log that Apache Kafka wrote, and what its own dump says is in it."""

import json
import re
from typing import Any

from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.metadata.records import decode_record
from odradek.metadata.replay import Replayer
from odradek.records.batch import iter_batches, iter_records
from tests.golden import loader

_PAYLOAD = re.compile(r"^\| offset: (\d+) .* payload: (\{.*\})$", re.MULTILINE)


def log_bytes() -> bytes:
    (segment,) = loader.segments("clean", "__cluster_metadata-0")
    return segment


def checkpoint_bytes() -> bytes:
    name = "__cluster_metadata-0/00000000000000000204-0000000001.checkpoint"
    return loader.files("clean", name)[name]


def replay(
    data: bytes, image: MetadataImage = EMPTY_IMAGE, from_offset: int = 0
) -> tuple[MetadataImage, list[MetadataDelta]]:
    replayer = Replayer(image)
    deltas = []
    for batch in iter_batches(data):
        if batch.is_control or batch.base_offset < from_offset:
            continue
        records = [decode_record(record.value or b"") for record in iter_records(data, batch)]
        deltas.append(
            replayer.apply(
                records,
                last_offset=batch.last_offset,
                epoch=batch.partition_leader_epoch,
                timestamp_ms=batch.max_timestamp,
            )
        )
    return replayer.image, deltas


def dumped(name: str) -> list[tuple[int, str, dict[str, Any]]]:
    """(offset, type, fields) of every record in Apache's dump of the log or the checkpoint."""
    text = loader.files("dumps", name)[name].decode()
    found = []
    for offset, payload in _PAYLOAD.findall(text):
        record = json.loads(payload)
        found.append((int(offset), record["type"], record["data"]))
    return found

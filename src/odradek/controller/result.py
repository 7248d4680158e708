"""What handling a command gives: records to append, and the answer once they are committed."""

from typing import Any, NamedTuple

from odradek.metadata.records import MetadataRecord


class ControllerResult(NamedTuple):
    records: list[MetadataRecord]
    response: Any

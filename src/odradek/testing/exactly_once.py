"""Whether every record of one topic is in another exactly once. Pure: records in, findings out."""

from collections import Counter
from collections.abc import Mapping, Sequence

from odradek.client.partition_reader import ConsumerRecord
from odradek.core.types import TopicPartition

SHOWN = 5


def findings(
    source: Sequence[ConsumerRecord],
    sink: Sequence[ConsumerRecord],
    unread: int,
    names: tuple[str, str, str],
    held: Mapping[TopicPartition, int] | None = None,
) -> list[str]:
    """What is wrong, one sentence each; nothing when every source record is in the sink once.

    `held` has the partitions with a transaction open, and where it begins: nothing is decided there yet.
    Records with keys are told apart by them; without, only the numbers of records can be compared.
    """
    source_name, sink_name, group = names
    out = [f"{tp} has a transaction open at offset {offset}" for tp, offset in (held or {}).items()]
    if unread:
        out.append(f"group {group} has not committed {unread} of the records in {source_name}")
    if all(r.key is not None for r in (*source, *sink)):
        wanted, got = Counter(r.key for r in source), Counter(r.key for r in sink)
        out += _difference("missing from", sink_name, wanted - got)
        out += _difference("too many in", sink_name, got - wanted)
    elif len(source) != len(sink):
        out.append(f"{source_name} has {len(source)} records, {sink_name} has {len(sink)}")
    return out


def _difference(what: str, sink_name: str, keys: Counter[bytes | None]) -> list[str]:
    if not keys:
        return []
    shown = ", ".join(f"{key!r}" + (f" x{n}" if n > 1 else "") for key, n in keys.most_common(SHOWN))
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return [f"{what} {sink_name}: {shown}{more}"]

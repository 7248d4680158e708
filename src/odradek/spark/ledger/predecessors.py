"""Whether another stream has read the same topics and written to the same topics before. Pure.

That is mostly a query whose checkpoint was changed or deleted: it starts from the beginning, and writes again
what it reads again.
"""

import json

from odradek.spark.ledger.ledger import LedgerEntry, Range, Stream, View, topics_of
from odradek.spark.source.planning import from_json


def describe_predecessors(
    view: View, stream: Stream, known: LedgerEntry | None, entry: LedgerEntry
) -> list[str]:
    """A warning for each that is found, at the decision by which a stream first writes to a topic. `known` is
    what was known of the stream before."""
    before = () if known is None else known.topics
    topics = set(topics_of(entry.decision)) - set(before)
    sources = source_topics(entry.decision.range)
    found = []
    for key, other in view.entries.items() if topics else ():
        owner = Stream(**json.loads(key))
        written = topics & set(other.topics)
        read = sources & source_topics(other.decision.range)
        if owner.query != stream.query and written and read:
            found.append(
                f"{_named(stream, entry)} begins to write to {_listed(written)} what it reads from "
                f"{_listed(read)}, but {_named(owner, other)} did so before: was a checkpoint changed "
                "or deleted? Records that both read are written twice"
            )
    return sorted(found)


def source_topics(range_: Range) -> set[str]:
    found: set[str] = set()
    for line in range_.end:
        try:
            found |= {tp.topic for tp in from_json(json.loads(line))[0]}
        except (ValueError, TypeError, AttributeError):
            continue  # another kind of source
    return found


def _named(stream: Stream, entry: LedgerEntry) -> str:
    return f"{entry.name} ({stream})" if entry.name else f"the query {stream}"


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))

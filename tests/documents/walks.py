"""The walks of ARCHITECTURE.md: which modules a request enters, in the order of first entry, by its trace.

`make docs` writes the lists, a test holds that they are up to date. The returns, which are all the calls
upwards that a walk may make, are written by hand.
"""

import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby

from tests.documents import node_walks
from tests.documents.known import ROOT
from tests.documents.layers import Place
from tests.documents.tracer import Tracer
from tests.support.lite import IS_LITE

DOCUMENT = ROOT / "ARCHITECTURE.md"
MICRO_BATCH = "a micro-batch of Spark"
_LIST = re.compile(r"^walk (?P<title>[\w -]+):.*\n(?P<list>(?:  .*\n)+)", re.M)
_RETURN = re.compile(r"^(?P<caller>[\w/]+) +↑ (?P<called>[\w/]+)  +\S", re.M)
_INDENT, _NAMES_AT, _WIDTH = "  ", 17, 120


def _micro_batch() -> Tracer:
    from tests.documents.spark_walk import traced  # Spark may not be installed

    return traced()


WALKS: dict[str, Callable[[], Tracer]] = {
    "a record in": lambda: node_walks.traced(node_walks.record_in),
    "a record out": lambda: node_walks.traced(node_walks.record_out),
    "a change of metadata": lambda: node_walks.traced(node_walks.change_of_metadata),
    "a transaction": lambda: node_walks.traced(node_walks.transaction),
    MICRO_BATCH: _micro_batch,
}


@cache
def trace(title: str) -> Tracer:
    return WALKS[title]()


def listed(places: Iterable[Place]) -> str:
    """A line for every stay in a layer, with what is entered there for the first time."""
    lines = []
    for layer, stay in groupby(places, key=lambda place: place.layer):
        names = textwrap.wrap(", ".join(place.name for place in stay), _WIDTH - _NAMES_AT) or [""]
        begins = [(_INDENT + layer).ljust(_NAMES_AT), *(" " * _NAMES_AT for _ in names[1:])]
        lines += [(begin + some).rstrip() for begin, some in zip(begins, names, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def lists(text: str) -> dict[str, str]:
    """By the titles of the walks, as a document has them."""
    return {match["title"]: match["list"] for match in _LIST.finditer(text)}


def returns(text: str) -> list[tuple[str, str]]:
    """Who calls whom upwards, as a document has it."""
    return [(match["caller"], match["called"]) for match in _RETURN.finditer(text)]


def drawn(text: str) -> str:
    """A document with its lists as the walks are now."""

    def draw(match: re.Match[str]) -> str:
        if match["title"] == MICRO_BATCH and IS_LITE:
            return match[0]
        return match[0].removesuffix(match["list"]) + listed(trace(match["title"]).entered)

    return _LIST.sub(draw, text)


if __name__ == "__main__":
    DOCUMENT.write_text(drawn(DOCUMENT.read_text()))

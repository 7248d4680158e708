"""What a node promises about one callback, one turn and one request; the tests here measure against it.

Work is counted in events: the calls of Python and C functions that a profiler sees. A slice of a node that
serves clients is about 5 ms, about 20,000 events. Here slices are ten times smaller, so that a case of
twenty slices takes a few hundredths of a second.
"""

from odradek.broker.node import Node
from odradek.runtime.slices import SLICE_CALLS

SLICE = 2_000
"""Events after which long work of a shrunk node gives way to others."""
LIMIT = 2 * SLICE
"""Events of one callback: a slice, and what it takes to notice that it is over."""
CASE = 20 * SLICE
"""Events of a whole case, as nearly as a case can be made so long."""
LONGEST_MS = 1_000
"""One callback may take so long on the worst of machines: C code that no event tells of."""

PING_TURNS = 4
"""Turns of the loop within which a short request is answered, whatever else goes on."""
PER_CONNECTION = 200
"""Events that a connection may take in a turn beside its share of the one slice: a receive, a header."""

MEMORY_MULTIPLE = 100
"""Bytes of memory that one byte of a request may take, its answer included."""
MEMORY_SLACK = 1 << 17
"""Bytes that a request of any size may take: the connection's buffers, a slice's own objects."""


def turn_limit(connections: int) -> int:
    """Events of all callbacks of one turn: the long work of all connections shares one slice."""
    return LIMIT + PER_CONNECTION * connections


def shrink_slices(node: Node) -> None:
    """Make the slices of a node ten times smaller than they are for clients."""
    node.slices.resize(SLICE_CALLS // 10)

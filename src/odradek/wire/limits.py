"""How much of a request is read at once. A decoder that finds more raises LongRequest, and the request is
read in slices instead."""

from typing import Final

from odradek.core.errors import ProtocolError

MOST_TAGS: Final = 64
"""Tagged fields in one struct. Apache's clients send two at most."""


ANY_NUMBER: Final = 1 << 31

ENDS_ELSEWHERE: Final = "a tagged field does not have the size it claims"


class LongRequest(ProtocolError):
    """A request with more entries than may be read at once."""

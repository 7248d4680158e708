"""What is read of a request in one go. Whoever meets more gives up, and the request is read in slices."""

from typing import Final

from odradek.core.errors import ProtocolError

MOST_TAGS: Final = 64
"""Tagged fields in one place; Apache's clients send two at most."""


ANY_NUMBER: Final = 1 << 31

ENDS_ELSEWHERE: Final = "a tagged field ends elsewhere than it says"


class LongRequest(ProtocolError):
    """A request with more entries than are read in one go."""

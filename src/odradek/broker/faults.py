"""Errors that a test injects: the next requests of an API are answered with them and not handled.

dispatch.py does this for most APIs. The handlers of Produce and Metadata do it themselves: Produce frames do
not pass dispatch.py, and a Metadata answer must still name the brokers.
"""

from odradek.core.errors import ErrorCode


class PlantedErrors:
    """Injected errors by API key, in order."""

    __slots__ = ("_planted", "active")

    def __init__(self) -> None:
        self.active = False
        self._planted: dict[int, list[tuple[ErrorCode, int]]] = {}

    def plant(self, api_key: int, code: ErrorCode, times: int = 1) -> None:
        if times > 0:
            self.active = True
            self._planted.setdefault(api_key, []).append((code, times))

    def clear(self) -> None:
        self.active = False
        self._planted.clear()

    def take(self, api_key: int) -> ErrorCode | None:
        """The error for this request, or None to handle it."""
        queue = self._planted.get(api_key)
        if not queue:
            return None
        code, times = queue[0]
        if times == 1:
            queue.pop(0)
        else:
            queue[0] = code, times - 1
        return code

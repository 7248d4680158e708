"""Findings of a check of log files: the place, the expected and the found content, and the consequence.
Pure."""

from typing import NamedTuple


class Finding(NamedTuple):
    """`position` is the first invalid byte of the file; None for the file as a whole."""

    file: str
    position: int | None
    problem: str
    expected: str
    found: str
    next_start: str


class Findings:
    """Findings in order. Of each kind and file it keeps the first one and counts the others."""

    __slots__ = ("_first", "_more")

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Finding] = {}
        self._more: dict[tuple[str, str], int] = {}

    def add(
        self, file: str, position: int | None, problem: str, expected: object, found: object, next_start: str
    ) -> None:
        key = (file, problem)
        if key in self._first:
            self._more[key] = self._more.get(key, 0) + 1
        else:
            self._first[key] = Finding(file, position, problem, str(expected), str(found), next_start)

    def all(self) -> list[Finding]:
        return [
            finding._replace(found=f"{finding.found}, and {self._more[key]} more")
            if key in self._more
            else finding
            for key, finding in self._first.items()
        ]

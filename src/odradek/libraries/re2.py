"""Regular expressions over topic names, in time linear in the name: no expression can hold up the node.

An expression becomes a machine whose states are followed all at once; what a set of states does on a
character is remembered, so that a topic costs little more than a walk over its name. A machine may have
thousands of states: making it and running it is paced work (runtime/slices.py).
"""

from typing import Final, NamedTuple

from odradek.libraries.re2_syntax import (
    WORD,
    Assertion,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse,
)
from odradek.runtime.slices import STEP, Paced

__all__ = ["Pattern", "PatternError"]

MAX_STATES = 10_000
_STATES_PER_STEP: Final = 32
_STATE_CALLS: Final = 4
_MAX_REMEMBERED = 100_000
"""States in all remembered sets together: a few megabytes, whatever the expression is."""
_NOWHERE: Final = -1


class _State(NamedTuple):
    """Go on to `after` on one of `chars`, or at once (`also` too) where the place fits."""

    chars: frozenset[str] | None
    place: str | None
    after: int
    also: int


_States = frozenset[int]


class Pattern:
    __slots__ = ("_remembered", "_remembered_states", "_start", "_states")

    def __init__(self) -> None:
        self._states: list[_State] = []
        self._start: _States = frozenset()
        self._remembered: dict[tuple[_States, str, str], _States] = {}
        self._remembered_states = 0

    @classmethod
    def of(cls, text: str) -> "Paced[Pattern]":
        """Raises PatternError where RE2J would, and where the expression is out of all proportion."""
        pattern = cls()
        match = pattern._add(None, None, _NOWHERE)
        assert match == 0
        node = parse(text)
        yield len(text)
        pattern._start = frozenset({(yield from pattern._build(node, match))})
        return pattern

    def matches(self, name: str) -> Paced[bool]:
        """Whether the expression matches all of the name."""
        states, before = self._start, ""
        remembered = self._remembered
        for char in name:
            key = (states, before, char)
            after = remembered.get(key)
            if after is None:
                after = yield from self._step(states, before, char)
                self._remembered_states += 1 + len(after)
                if self._remembered_states > _MAX_REMEMBERED:
                    remembered.clear()
                    self._remembered_states = 1 + len(after)
                remembered[key] = after
            if not after:
                return False
            states, before = after, char
        return 0 in (yield from self._reach(states, before, ""))

    # --- running --------------------------------------------------------------------------------------

    def _step(self, states: _States, before: str, char: str) -> Paced[_States]:
        found = []
        reached = yield from self._reach(states, before, char)
        for i in reached:
            state = self._states[i]
            if state.chars is not None and char in state.chars:
                found.append(state.after)
        yield len(found)
        return frozenset(found)

    def _reach(self, states: _States, before: str, after: str) -> Paced[set[int]]:
        """Where one gets without reading, between two characters; none before the first or after the last."""
        seen: set[int] = set()
        todo = list(states)
        while todo:
            i = todo.pop()
            if i == _NOWHERE or i in seen:
                continue
            seen.add(i)
            if not len(seen) % _STATES_PER_STEP:
                yield _STATE_CALLS * _STATES_PER_STEP
            state = self._states[i]
            if state.chars is None and (state.place is None or _is_at(state.place, before, after)):
                todo += (state.after, state.also)
        yield _STATE_CALLS * (1 + len(seen) % _STATES_PER_STEP)
        return seen

    # --- building, from the end to the start ----------------------------------------------------------

    def _add(self, chars: frozenset[str] | None, place: str | None, after: int, also: int = _NOWHERE) -> int:
        if len(self._states) >= MAX_STATES:
            raise PatternError("expression is too large")
        self._states.append(_State(chars, place, after, also))
        return len(self._states) - 1

    def _build(self, node: Node, after: int) -> Paced[int]:
        """The state from which `node` is followed by `after`."""
        yield STEP
        if isinstance(node, Chars):
            return self._add(node.chars, None, after)
        if isinstance(node, Assertion):
            return self._add(None, node.kind, after)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = yield from self._build(part, after)
            return after
        if isinstance(node, Choice):
            entry = yield from self._build(node.parts[-1], after)
            for part in reversed(node.parts[:-1]):
                entry = self._add(None, None, (yield from self._build(part, after)), entry)
            return entry
        return (yield from self._build_repeat(node, after))

    def _build_repeat(self, node: Repeat, after: int) -> Paced[int]:
        if node.most is None:
            loop = self._add(None, None, after)
            inside = yield from self._build(node.part, loop)
            self._states[loop] = _State(None, None, after, inside)
            entry = loop
        else:
            entry = after
            for _ in range(node.most - node.least):
                entry = self._add(None, None, (yield from self._build(node.part, entry)), after)
        for _ in range(node.least):
            entry = yield from self._build(node.part, entry)
        return entry


def _is_at(place: str, before: str, after: str) -> bool:
    if place == "begin":
        return not before
    if place == "end":
        return not after
    is_edge = (before in WORD) != (after in WORD)
    return is_edge if place == "word" else not is_edge

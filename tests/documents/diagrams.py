"""The states that tables guard, as Mermaid diagrams in the documents, read from those tables.

`make docs` writes them between their markers; a test holds that they are up to date.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.client import transaction_states as producer
from odradek.coordinators.groups.classic import states as classic
from odradek.coordinators.transactions import states as transaction
from odradek.raft import roles as raft

DOCS = Path(__file__).parents[2] / "docs"
_DRAWING = re.compile(
    r"(<!-- states of (?P<name>[\w ]+): make docs -->\n).*?(<!-- end of states -->\n)", re.DOTALL
)

Moves = Mapping[str, Iterable[str]]
"""State, and the states that may follow it, in the order in which they are drawn."""


def _following(states: Iterable[str], previous: Mapping[str, Iterable[str]]) -> Moves:
    """From a table of what may come before to one of what may come after."""
    names = list(states)
    return {state: [after for after in names if state in previous[after]] for state in names}


def _classic_group() -> Moves:
    return {state.value: [after.value for after in moves] for state, moves in classic.TRANSITIONS.items()}


def _transaction() -> Moves:
    table = {s.title: {p.title for p in previous} for s, previous in transaction.VALID_PREVIOUS.items()}
    return _following((state.title for state in transaction.TxnState), table)


def _transactional_producer() -> Moves:
    """Without the moves into FATAL_ERROR, which every state has."""
    fatal = producer.State.FATAL_ERROR
    table = {
        s.name: {p.name for p in before} for s, before in producer.VALID_PREVIOUS.items() if s is not fatal
    }
    return _following((state.name for state in producer.State if state is not fatal), table)


def _quorum() -> Moves:
    return {role.__name__: [after.__name__ for after in moves] for role, moves in raft.TRANSITIONS.items()}


TABLES = {
    "a classic group": _classic_group,
    "a transaction": _transaction,
    "a transactional producer": _transactional_producer,
    "a replica of the quorum": _quorum,
}


def mermaid(moves: Moves) -> str:
    """The first state is where it begins; one that nothing follows is where it ends."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(moves))}"]
    for state, following in moves.items():
        lines += [f"    {state} --> {after}" for after in following]
        if not list(following):
            lines.append(f"    {state} --> [*]")
    return "\n".join([*lines, "```\n"])


def drawn(text: str) -> str:
    """A document with its diagrams as the tables are now."""
    return _DRAWING.sub(lambda m: f"{m[1]}\n{mermaid(TABLES[m['name']]())}\n{m[3]}", text)


def names(text: str) -> list[str]:
    return [match["name"] for match in _DRAWING.finditer(text)]


if __name__ == "__main__":
    for page in DOCS.glob("*.md"):
        page.write_text(drawn(page.read_text()))

"""Scripts of the quorum's machine: events in, effects out. ODRADEK_REWRITE_GOLDEN=1 records them again."""

import os
from pathlib import Path

import pytest

from odradek.raft.replica import Replica
from odradek.raft.roles import TRANSITIONS, Role
from tests.golden.raft.interpreter import play

SCRIPTS = sorted((Path(__file__).parent / "raft").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_machine_does_what_the_script_says(script: Path) -> None:
    text = script.read_text()
    played = play(text)
    if os.environ.get("ODRADEK_REWRITE_GOLDEN"):
        script.write_text(played)
    else:
        assert played == text


def test_every_move_of_the_table_is_in_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[tuple[str, str]] = set()
    become = Replica.become

    def noted(replica: Replica, role: Role) -> None:
        made.add((type(replica.role).__name__, type(role).__name__))
        become(replica, role)

    monkeypatch.setattr(Replica, "become", noted)
    for script in SCRIPTS:
        play(script.read_text())
    table = {(role.__name__, after.__name__) for role, moves in TRANSITIONS.items() for after in moves}
    assert table - made == set()

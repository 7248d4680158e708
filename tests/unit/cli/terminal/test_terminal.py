"""What goes to which stream, and when a person is asked."""

import io

import pytest

from odradek.cli.errors import Usage
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns
from odradek.cli.terminal.progress import Progress
from odradek.cli.terminal.terminal import Terminal

CHANGE = Table(columns("TOPIC RECORDS#"), [["orders", 5]])


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def session(stdin: io.StringIO, stderr: io.StringIO, **environment: str) -> tuple[Session, io.StringIO]:
    out = io.StringIO()
    made = Session(None, (), "text", False, None, environment)
    made.terminal = Terminal(environment, stdin=stdin, stdout=out, stderr=stderr)
    return made, out


def test_data_and_notes_never_mix() -> None:
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal({}, stdout=out, stderr=err)
    terminal.data("rows\n")
    terminal.note("note")
    terminal.error("bad", hint="do this")
    assert out.getvalue() == "rows\n"
    assert err.getvalue() == "note\nerror: bad\n  do this\n"


def test_quiet_keeps_notes_away_but_not_errors() -> None:
    err = io.StringIO()
    terminal = Terminal({}, quiet=True, stderr=err)
    terminal.note("note")
    terminal.error("bad")
    assert err.getvalue() == "error: bad\n"


@pytest.mark.parametrize(
    ("environment", "live", "colour"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"CI": "true"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_the_environment_decides_about_colour_and_progress(
    environment: dict[str, str], live: bool, colour: bool
) -> None:
    terminal = Terminal(environment, stderr=Tty())
    assert (terminal.is_live, terminal.has_colour) == (live, colour)
    assert not Terminal(environment, stderr=io.StringIO()).is_live


def test_harm_is_refused_without_a_terminal_and_without_yes() -> None:
    made, out = session(io.StringIO("y\n"), io.StringIO())
    with pytest.raises(Usage, match="not a terminal: pass -y to confirm"):
        made.confirm(CHANGE, "Delete?", yes=False, dry_run=False)
    assert made.confirm(CHANGE, "Delete?", yes=True, dry_run=False)
    assert out.getvalue() == ""


def test_a_dry_run_shows_and_does_nothing() -> None:
    made, out = session(io.StringIO(), io.StringIO())
    assert not made.confirm(CHANGE, "Delete?", yes=True, dry_run=True)
    assert out.getvalue() == "TOPIC   RECORDS\norders        5\n"


def test_a_person_is_shown_the_change_and_asked() -> None:
    err = Tty()
    made, out = session(Tty("y\n"), err)
    assert made.confirm(CHANGE, "Delete?", yes=False, dry_run=False)
    assert err.getvalue() == "TOPIC   RECORDS\norders        5\nDelete? [y/N] "
    assert out.getvalue() == ""


def test_an_answer_of_no_is_no_error_but_the_command_has_not_done_its_work() -> None:
    err = Tty()
    made, _ = session(Tty("n\n"), err)
    with pytest.raises(SystemExit) as ended:
        made.confirm(CHANGE, "Delete?", yes=False, dry_run=False)
    assert ended.value.code == 1
    assert err.getvalue().endswith("Delete? [y/N] nothing was changed\n")


def test_progress_is_silent_for_short_work_and_redraws_on_a_terminal() -> None:
    now = [0]
    err = Tty()
    with Progress(Terminal({}, stderr=err), lambda: now[0], "reading", "records", 1000) as progress:
        now[0] = 400
        progress.advance(100)
        assert err.getvalue() == ""
        now[0] = 1000
        progress.advance(400)
    assert (
        "reading: [##########..........] 50% 500/1,000 records, 500 records/s, 1.0 s, 1.0 s left"
        in err.getvalue()
    )
    assert err.getvalue().endswith("\r\x1b[K")


def test_progress_in_a_pipe_is_a_line_every_ten_seconds() -> None:
    now = [0]
    err = io.StringIO()
    with Progress(Terminal({}, stderr=err), lambda: now[0], "reading", "records") as progress:
        for second in range(25):
            now[0] = second * 1000
            progress.advance()
    assert err.getvalue() == (
        "reading: 11 records, 1 records/s, 10.0 s\nreading: 21 records, 1 records/s, 20.0 s\n"
    )

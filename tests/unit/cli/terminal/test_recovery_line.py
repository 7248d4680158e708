"""The progress of the recovery on a terminal."""

import io

from odradek.cli.terminal.recovery_line import RecoveryLine
from odradek.cli.terminal.terminal import Terminal
from odradek.log.opening.starting import Recovery


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def recovered(stream: io.StringIO) -> str:
    recovery = Recovery()
    for _ in range(2):
        recovery.expect(3_000_000_000)
    with RecoveryLine(recovery, Terminal({}, stderr=stream)):
        recovery.read(1_500_000_000)
        recovery.opened()
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_is_gone_in_the_end() -> None:
    drawn = recovered(Screen())
    assert drawn.startswith("\r\x1b[Krecovered 0 of 2 partitions, 1.5 of 6.0 GB")
    assert drawn.endswith("\r\x1b[K")
    assert "\n" not in drawn


def test_a_file_is_left_to_the_log() -> None:
    assert recovered(io.StringIO()) == ""

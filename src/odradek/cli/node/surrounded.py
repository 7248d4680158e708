"""The command that a cluster was started for, and the signals to this process: they are for the command."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from odradek.cli.errors import Failure

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SurroundedCommand:
    """Before the command runs, or without one, a signal is a KeyboardInterrupt. Once the cluster ends,
    another one calls `hurry`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._hurry: Callable[[], None] | None = None
        self._is_holding = False
        self._held = False

    @contextmanager
    def taking_signals(self) -> Iterator[None]:
        before = [signal.signal(number, self._take) for number in _SIGNALS]
        try:
            yield
        finally:
            for number, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def holding_signals(self) -> Iterator[None]:
        """A signal interrupts only the end of this."""
        self._is_holding = True
        try:
            yield
        finally:
            self._is_holding = False
        if self._held:
            raise KeyboardInterrupt

    def end(self, hurry: Callable[[], None]) -> None:
        """The cluster ends now; signals no longer interrupt what this process does."""
        self._hurry = hurry

    def _take(self, number: int, frame: object) -> None:
        if self._is_holding:
            self._held = True
        elif self._hurry is not None:
            self._hurry()
        elif self._process is None:
            raise KeyboardInterrupt
        else:
            self._process.send_signal(number)

    def wait_for_signal(self, announce: Callable[[], None]) -> int:
        """Announce that this waits, then wait. A signal is the expected end from the announcement on."""
        try:
            announce()
            while True:
                signal.pause()
        except KeyboardInterrupt:
            return 0

    def run(self, words: list[str], bootstrap_servers: str) -> int:
        """Its exit code; that of a shell where a signal ended it."""
        environment = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers}
        try:
            # In a process group of its own, since Ctrl-C reaches this process, which hands it on.
            self._process = subprocess.Popen(words, env=environment, process_group=0)
        except OSError as e:
            raise Failure(f"{words[0]}: {e.strerror}") from e
        code = self._process.wait()
        return code if code >= 0 else 128 - code

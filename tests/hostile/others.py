"""A second client beside a hostile one: what it waits is what the hostile one does to others."""

import threading
import time

from tests.hostile.sides import Process

PAUSE_S = 0.002


class Others:
    """A well-behaved client that asks short questions, and notes how long each answer took."""

    def __init__(self, process: Process, asks: list[bytes]) -> None:
        self._process = process
        self._asks = asks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.waits_s: list[float] = []
        self.failed = False

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with self._process.client() as client:
                while not self._stop.is_set():
                    began = time.monotonic()
                    self._process.ask(client, self._asks[len(self.waits_s) % len(self._asks)])
                    self.waits_s.append(time.monotonic() - began)
                    time.sleep(PAUSE_S)
        except OSError:
            self.waits_s.append(time.monotonic() - began)
            self.failed = True

    def __enter__(self) -> "Others":
        self._thread.start()
        while not self.waits_s and not self.failed:
            time.sleep(PAUSE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

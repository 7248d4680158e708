"""The brokers of one pytest session: which test gets which, and when one may not be used again."""

from collections.abc import Mapping

import pytest

from odradek.testing.kafka import Kafka
from odradek.testing.server import KafkaServer, Unavailable
from odradek.testing.settings import as_texts

_Key = tuple[tuple[str, str], ...]


class Servers:
    """One broker per configuration that a test asked for, and the one of `kafka_server`.

    That one is apart: what a session's fixtures keep there must outlive a test that moves its broker's clock.
    """

    def __init__(self, bootstrap: str | None) -> None:
        self._bootstrap = bootstrap
        self._shared: KafkaServer | None = None
        self._servers: dict[_Key, KafkaServer] = {}
        self._refusals: dict[_Key, str] = {}

    def shared(self) -> KafkaServer:
        """The broker of `kafka_server`."""
        if self._bootstrap is not None:
            return self._get(())
        if self._shared is None:
            self._shared = self._start(())
        return self._shared

    def view(self, config: Mapping[str, str | bool | int | float], *, uses_shared: bool) -> Kafka:
        """A test's view of the broker with its configuration; of `kafka_server`, where the test uses that."""
        settings = tuple(sorted(as_texts(config).items()))
        if self._bootstrap is not None and settings:
            pytest.skip("the broker given by --kafka-bootstrap has its own configuration")
        if uses_shared and not settings:
            return Kafka(self.shared(), is_shared=True)
        return Kafka(self._get(settings))

    def take_back(self, view: Kafka) -> None:
        """Clean up after a test; a broker that no longer lives in the present is not used again."""
        broker = view.server.broker
        if broker is None or not broker.shift.seconds:
            view.close()
            return
        self._servers = {key: server for key, server in self._servers.items() if server is not view.server}
        view.server.close()

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        if self._shared is not None:
            self._shared.close()

    def _get(self, settings: _Key) -> KafkaServer:
        if settings not in self._servers:
            self._servers[settings] = self._start(settings)
        return self._servers[settings]

    def _start(self, settings: _Key) -> KafkaServer:
        """What was refused once is refused at once: no test waits for it again."""
        if settings not in self._refusals:
            try:
                if self._bootstrap is not None:
                    return KafkaServer.external(self._bootstrap)
                return KafkaServer.embedded(dict(settings))
            except Unavailable as e:
                self._refusals[settings] = str(e)
        pytest.fail(self._refusals[settings], pytrace=False)

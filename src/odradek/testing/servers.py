"""The brokers of one pytest session: which test gets which, and when one may not be used again."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest

from odradek.testing.kafka import Kafka
from odradek.testing.server import KafkaServer, Unavailable
from odradek.testing.settings import as_texts


class _Key(NamedTuple):
    brokers: int = 1
    settings: tuple[tuple[str, str], ...] = ()


_PLAIN: Final = _Key()


class Servers:
    """One broker, or one cluster, per configuration that a test asked for, and the one of `kafka_server`.

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
            return self._get(_PLAIN)
        if self._shared is None:
            self._shared = self._start(_PLAIN)
        return self._shared

    def view(
        self, brokers: int, config: Mapping[str, str | bool | int | float], *, uses_shared: bool
    ) -> Kafka:
        """A test's view of the brokers that it asked for; of `kafka_server`, where the test uses that."""
        key = _Key(brokers, tuple(sorted(as_texts(config).items())))
        if self._bootstrap is not None:
            return Kafka(self._given(key))
        if uses_shared and key == _PLAIN:
            return Kafka(self.shared(), is_shared=True)
        return Kafka(self._get(key))

    def _given(self, key: _Key) -> KafkaServer:
        if key.settings:
            pytest.skip("the broker given by --kafka-bootstrap has its own configuration")
        server = self._get(_PLAIN)
        if key.brokers > 1 and server.broker_count() < key.brokers:
            pytest.skip(f"the cluster given by --kafka-bootstrap has fewer than {key.brokers} brokers")
        return server

    def take_back(self, view: Kafka) -> None:
        """Clean up after a test; brokers that no longer live in the present are not used again."""
        cluster = view.server.cluster
        if cluster is None or cluster.is_reusable:
            view.close()
            return
        self._servers = {key: server for key, server in self._servers.items() if server is not view.server}
        view.server.close()

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        if self._shared is not None:
            self._shared.close()

    def _get(self, key: _Key) -> KafkaServer:
        if key not in self._servers:
            self._servers[key] = self._start(key)
        return self._servers[key]

    def _start(self, key: _Key) -> KafkaServer:
        """What was refused once is refused at once: no test waits for it again."""
        if key not in self._refusals:
            try:
                if self._bootstrap is not None:
                    return KafkaServer.external(self._bootstrap)
                return KafkaServer.embedded(dict(key.settings), key.brokers)
            except Unavailable as e:
                self._refusals[key] = str(e)
        pytest.fail(self._refusals[key], pytrace=False)

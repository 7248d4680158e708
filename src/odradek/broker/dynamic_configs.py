"""Applies dynamic configs from the metadata to the parts of the node."""

import logging
from collections.abc import Callable, Sequence

from odradek.broker.network.address_limits import AddressLimits
from odradek.core.configs import ConfigError, NodeConfig, check_protection
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_TOPIC, TopicImage
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.manager import CONFIGURED, ReplicaManager
from odradek.runtime.scope import Scope
from odradek.runtime.slices import FEW, Paced

_log = logging.getLogger(__name__)

Reconfigure = Callable[[NodeConfig], None]
"""Applies the current settings to one part of the node."""


class DynamicConfigs:
    """Call `load` before the logs are opened, and `subscribe` afterwards."""

    def __init__(
        self,
        config: NodeConfig,
        metadata: MetadataPublisher,
        replicas: ReplicaManager,
        address_limits: AddressLimits,
        scope: Scope,
        reconfigure: Sequence[Reconfigure],
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._replicas = replicas
        self._address_limits = address_limits
        self._scope = scope
        self._reconfigure = reconfigure

    async def load(self) -> None:
        """Apply the dynamic configs of the metadata log. Raises ConfigError if they ask for protection that
        this node does not have."""
        self._apply()
        try:
            check_protection(self._config)
        except ConfigError as e:
            raise ConfigError(e.key, e.value, e.reason, f"{e} (set in the metadata log)") from e
        await self._address_limits.configure(self._config)

    def subscribe(self) -> None:
        """Apply every further change. Configs come before partitions, so that new logs open with them."""
        self._metadata.subscribe(self._on_delta)

    def _on_delta(self, delta: MetadataDelta) -> Paced[None]:
        known = delta.image.topics_by_name
        changed: list[TopicImage] = []
        has_defaults = False
        for kind, name in delta.changed_configs:
            yield FEW
            if kind == RESOURCE_TOPIC and name in known:
                changed.append(known[name])
            has_defaults = has_defaults or kind == RESOURCE_BROKER
        if has_defaults:
            self._apply()
            self._scope.spawn(self._limit_addresses(), name="limit addresses")
            changed = list(known.values())
            yield CONFIGURED
        yield from self._replicas.configs_changed(changed)

    def _apply(self) -> None:
        config, image = self._config, self._metadata.image
        config.set_dynamic(
            image.config(RESOURCE_BROKER, str(config.node_id)), image.config(RESOURCE_BROKER, CLUSTER_DEFAULT)
        )
        for reconfigure in self._reconfigure:
            reconfigure(config)

    async def _limit_addresses(self) -> None:
        """Apply the connection limits of addresses. Resolving host names may take a while."""
        try:
            await self._address_limits.configure(self._config)
        except ConfigError as e:
            _log.error("Invalid connection limits for addresses, keeping the previous ones: %s", e)

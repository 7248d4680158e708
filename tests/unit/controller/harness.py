"""A controller without a log: what it decides is applied at once, at made-up offsets."""

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from odradek.controller.controller import Controller
from odradek.core.configs import NodeConfig
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import MetadataImage
from odradek.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    decode_record,
    encode_record,
)
from odradek.metadata.replay import Replayer
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.runtime.slices import at_once
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

CLUSTER_ID = "gY0T1iObrjDNl0eEy1qiIQ"


def incarnation(n: int) -> UUID:
    return UUID(int=(n << 64) + 1000)


def log_dir(broker_id: int) -> UUID:
    return UUID(int=(broker_id << 32) + 1000)


class Harness:
    """`call` decides and applies; `records` and `delta` are those of the last call."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, elr: bool = True) -> None:
        self._config, _ = NodeConfig.from_sources({}, dict(settings or {}))
        self.controller = self._new_controller(Replayer())
        self.now_ms = 1_000_000
        self.next_offset = 0
        self.records: list[MetadataRecord] = []
        self.delta: MetadataDelta | None = None
        bootstrap: list[MetadataRecord] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
        if elr:
            bootstrap.append(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
            bootstrap.append(
                ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")
            )
        self.apply(bootstrap)

    def _new_controller(self, replayer: Replayer) -> Controller:
        return Controller(
            config=self._config,
            cluster_id=CLUSTER_ID,
            kraft_version=1,
            rng=random.Random(7),
            replayer=replayer,
        )

    def fail_over(self) -> None:
        """Another controller takes over: it knows the image, and no broker yet."""
        self.controller = self._new_controller(Replayer(self.image))
        self.controller.start_sessions(incarnation(1), self.now_ms)

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def apply(self, records: list[MetadataRecord]) -> None:
        """Through their bytes, as the log would."""
        versions = self.controller.versions
        again = [decode_record(encode_record(record, versions.of(record))) for record in records]
        self.records = again
        if again:
            self.next_offset += len(again)
            staging = self.controller.stage(
                again, last_offset=self.next_offset - 1, epoch=1, timestamp_ms=self.now_ms
            )
            self.delta = self.controller.take(at_once(staging))
            at_once(self.controller.note_names(self.delta))

    def call(self, api_key: ApiKey, request: Any) -> Any:
        result = at_once(self.controller.handle(api_key, request, self.now_ms, self.next_offset))
        self.apply(result.records)
        return result.response

    def expire(self) -> int | None:
        broker, records = at_once(self.controller.expire_session(self.now_ms))
        self.apply(records)
        return None if broker is None else broker.id

    # --- shorthands ---------------------------------------------------------------------------------

    def register(self, broker_id: int = 1, process: int = 1, previous_epoch: int = -1, **changes: Any) -> Any:
        types = request_types(ApiKey.BROKER_REGISTRATION)
        listener = types.Listener(name="PLAINTEXT", host="127.0.0.1", port=9091 + broker_id)
        features = [
            types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in SUPPORTED_FEATURES.items()
        ]
        request = types.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation(process),
            listeners=[listener],
            features=features,
            rack=None,
            log_dirs=[log_dir(broker_id)],
            previous_broker_epoch=previous_epoch,
        )
        for name, value in changes.items():
            assert hasattr(request, name)
            setattr(request, name, value)
        return self.call(ApiKey.BROKER_REGISTRATION, request)

    def heartbeat(self, broker_id: int = 1, **changes: Any) -> Any:
        types = request_types(ApiKey.BROKER_HEARTBEAT)
        fields = {
            "broker_epoch": self.image.brokers[broker_id].epoch,
            "current_metadata_offset": self.next_offset,
            **changes,
        }
        return self.call(ApiKey.BROKER_HEARTBEAT, types.BrokerHeartbeatRequest(broker_id=broker_id, **fields))

    def start_broker(self, broker_id: int = 1) -> None:
        self.register(broker_id)
        self.heartbeat(broker_id)
        assert not self.image.brokers[broker_id].fenced

    def create(self, name: str, partitions: int = 1, replication_factor: int = 1, **fields: Any) -> Any:
        """The result for one topic."""
        types = request_types(ApiKey.CREATE_TOPICS)
        configs = fields.pop("configs", {})
        rows = fields.pop("assignments", {})
        validate_only = fields.pop("validate_only", False)
        assert not fields
        topic = types.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[types.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
            assignments=[
                types.CreatableReplicaAssignment(partition_index=i, broker_ids=row) for i, row in rows.items()
            ],
        )
        request = types.CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        (result,) = self.call(ApiKey.CREATE_TOPICS, request).topics
        return result

    def kinds(self) -> list[str]:
        return [type(record).__name__ for record in self.records]


def with_one_broker(settings: Mapping[str, str] | None = None, *, elr: bool = True) -> Harness:
    harness = Harness(settings, elr=elr)
    harness.start_broker()
    return harness

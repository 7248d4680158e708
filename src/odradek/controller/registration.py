"""Brokers and controllers make themselves known: what the controller checks and writes down. Pure."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.controller.brokers import records_for_shutdown
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import RESERVED_DIRS, BrokerRegistration
from odradek.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from odradek.metadata.versions import KRAFT_VERSION, METADATA_VERSION, knows_controllers
from odradek.runtime.slices import Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.broker_registration import BrokerRegistrationRequest
    from odradek.wire.requests.controller_registration import ControllerRegistrationRequest


def register_broker(
    c: "Controller", request: "BrokerRegistrationRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    """The same incarnation amends its registration; another one gets an epoch, and is fenced.

    An incarnation bars others once it has sent a heartbeat, until its session ends: unless its directories
    prove that it stopped cleanly. Of nodes that stop together, the last can tell nobody that they leave.
    """
    broker_id = request.broker_id
    if request.cluster_id != c.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {c.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    existing = c.image.brokers.get(broker_id)
    is_same = existing is not None and existing.incarnation_id == request.incarnation_id
    # One that was unregistered has no epoch to show: it counts as one that may have lost its records.
    is_clean = existing is not None and existing.epoch == request.previous_broker_epoch
    if existing is not None and not (is_same or is_clean) and _is_heard(c, existing, now_ms):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this "
            "should self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers."
        )
    if c.versions.has_directories:
        _check_directories(c, broker_id, request.log_dirs)
    _check_features(c, request.features)
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset,
        end_points=_endpoints(request.listeners),
        features=_features(request.features),
        rack=request.rack,
        log_dirs=tuple(request.log_dirs) if c.versions.has_directories else (),
    )
    records: list[MetadataRecord] = []
    if existing is not None and is_same:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        records = yield from records_for_shutdown(c, broker_id, is_clean)
        c.sessions.begin(broker_id, next_offset, now_ms)
    records.append(record)
    c.registration_offsets[broker_id] = next_offset + len(records) - 1
    types = responses.broker_registration
    return ControllerResult(records, types.BrokerRegistrationResponse(broker_epoch=record.broker_epoch))


def _is_heard(c: "Controller", broker: BrokerRegistration, now_ms: int) -> bool:
    return c.sessions.is_heard(broker.id, broker.epoch, now_ms)


def _check_directories(c: "Controller", broker_id: int, log_dirs: Iterable[UUID]) -> None:
    seen = list(log_dirs)
    if not seen:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(d in RESERVED_DIRS for d in seen):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(seen)) < len(seen):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for other in c.image.brokers.values():
        taken = [d for d in seen if other.id != broker_id and d in other.log_dirs]
        if taken:
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION,
                f"Broker {other.id} is already registered with directory {taken[0]}",
            )


def _check_features(c: "Controller", features: Iterable[Any]) -> None:
    """What is not finalized is at level 0, which a broker must support, too."""
    finalized = {**c.image.features, KRAFT_VERSION: c.kraft_version}
    supported = {f.name: (f.min_supported_version, f.max_supported_version) for f in features}
    for name, levels in supported.items():
        _check_level(name, finalized.get(name, 0), levels)
    if METADATA_VERSION not in supported:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'")
    for name, level in finalized.items():
        if name not in supported:
            _check_level(name, level, (0, 0))


def _check_level(name: str, level: int, supported: tuple[int, int]) -> None:
    low, high = supported
    if not low <= level <= high:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of "
            f"{name}. The broker wants a version between {low} and {high}, inclusive.",
        )


def register_controller(
    c: "Controller", request: "ControllerRegistrationRequest", now_ms: int, next_offset: int
) -> ControllerResult:
    """The newest registration of a controller counts. What it supports is asked when a feature changes.

    Where an incarnation asks again, there is nothing to write.
    """
    if not knows_controllers(c.image.metadata_version):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    response = responses.controller_registration.ControllerRegistrationResponse()
    known = c.image.controllers.get(request.controller_id)
    if known is not None and known.incarnation_id == request.incarnation_id:
        return ControllerResult([], response)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=_endpoints(request.listeners),
        features=_features(request.features),
    )
    return ControllerResult([record], response, is_atomic=True)


def _endpoints(listeners: Iterable[Any]) -> list[BrokerEndpoint]:
    return [
        BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
        for e in listeners
    ]


def _features(features: Iterable[Any]) -> list[BrokerFeature]:
    return [
        BrokerFeature(
            name=f.name,
            min_supported_version=f.min_supported_version,
            max_supported_version=f.max_supported_version,
        )
        for f in features
    ]

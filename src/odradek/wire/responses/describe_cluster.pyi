"""Made by tools/stubs from definitions/describe_cluster.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeClusterResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: Sequence[DescribeClusterBroker]
    cluster_authorized_operations: int
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        endpoint_type: int = ...,
        cluster_id: str = ...,
        controller_id: int = ...,
        brokers: Sequence[DescribeClusterBroker] = ...,
        cluster_authorized_operations: int = ...,
    ) -> None: ...

class DescribeClusterBroker(Message):
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool
    def __init__(
        self,
        *,
        broker_id: int = ...,
        host: str = ...,
        port: int = ...,
        rack: str | None = ...,
        is_fenced: bool = ...,
    ) -> None: ...

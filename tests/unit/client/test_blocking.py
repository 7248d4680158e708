"""The same client for code that blocks. The broker runs on a loop of another thread, as brokers do."""

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from odradek.client.blocking import BlockingClient
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_broker import FakeBroker, HangUp

TP = TopicPartition("t", 0)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    fake = FakeBroker()

    async def on_loop(listen: bool) -> None:
        if listen:
            fake.listen()
        else:
            fake.close()

    asyncio.run_coroutine_threadsafe(on_loop(True), loop).result()
    yield fake
    asyncio.run_coroutine_threadsafe(on_loop(False), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def hang_up(_request: object) -> None:
    raise HangUp


def test_requests_and_admin_calls_return_their_answers(broker: FakeBroker) -> None:
    with BlockingClient(broker.address, client_id="x", request_timeout_ms=5_000) as client:
        types = request_types(ApiKey.METADATA)
        response = client.send(ApiKey.METADATA, types.MetadataRequest(topics=None), node_id=1, version=7)
        assert [topic.name for topic in response.topics] == ["t"]
        test_consumer.Log(broker, 20)
        assert client.call(client.admin.list_offsets, {TP: -1})[TP].offset == 20
        test_consumer.Group(broker)
        assert client.coordinator("g") == 1
    client.close()


def test_errors_reach_the_caller(broker: FakeBroker) -> None:
    with BlockingClient(broker.address) as client:
        with pytest.raises(KafkaError) as error:
            client.call(client.client.leader, TopicPartition("nope", 0))
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    port = broker.port
    with BlockingClient(f"localhost:{port}", request_timeout_ms=2_000) as client:
        broker.handlers[ApiKey.METADATA] = hang_up
        with pytest.raises(ConnectionError):
            client.call(client.client.refresh)


def test_a_blocking_producer_delivers_and_reports(broker: FakeBroker) -> None:
    log = test_producer.Log(broker)
    deliveries = []
    with BlockingClient(broker.address, retry_backoff_ms=1) as client, client.producer() as producer:
        assert producer.deliver("t", b"0").offset == 0
        producer.send("t", b"1", on_delivery=lambda delivery, error: deliveries.append((delivery, error)))
        producer.flush()
        log.fail = lambda _attempt, _partition: ErrorCode.MESSAGE_TOO_LARGE
        producer.send("t", b"2")
        with pytest.raises(KafkaError):
            producer.flush()
        producer.flush()
    assert log.values() == [b"0", b"1"]
    ((delivery, error),) = deliveries
    assert delivery is not None
    assert (delivery.offset, error) == (1, None)


def test_a_blocking_consumer_reads_and_commits(broker: FakeBroker) -> None:
    test_consumer.Log(broker, 20)
    group = test_consumer.Group(broker)
    with BlockingClient(broker.address) as client:
        with client.consumer(group_id="g", max_wait_ms=10, auto_offset_reset="earliest") as consumer:
            consumer.assign([TP])
            records = []
            while len(records) < 5:
                records += consumer.poll(1_000, 5 - len(records))
            assert [record.offset for record in records] == [0, 1, 2, 3, 4]
            consumer.seek(TP, 10)
            assert consumer.position(TP) == 10
            consumer.commit()
            assert consumer.assignment == [TP]
        assert group.committed == 10


def test_closing_ends_what_an_interrupt_left_on_the_loop() -> None:
    client = BlockingClient("127.0.0.1:1")
    begun, ended = threading.Event(), threading.Event()

    async def left_behind() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def run() -> None:
        with contextlib.suppress(CancelledError):
            client.run(left_behind())

    threading.Thread(target=run).start()
    assert begun.wait(10)
    client.close()
    assert ended.is_set()


@pytest.mark.filterwarnings("error")
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_before_anything_is_awaited_leaves_nothing_to_warn_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a real signal, at the moment where a call has everything but the loop."""
    with BlockingClient("127.0.0.1:1") as client, client.consumer() as consumer:

        def interrupted(*_: object) -> None:
            signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    consumer.poll()
        finally:
            signal.signal(signal.SIGINT, before)
        gc.collect()
        assert consumer.poll(10) == []


def test_transactions_of_code_that_blocks() -> None:
    from odradek.client import READ_COMMITTED, State
    from odradek.testing import Broker

    tp = TopicPartition("t", 0)
    with (
        Broker() as node,
        BlockingClient(node.bootstrap_servers) as client,
        client.transactional_producer("x") as producer,
    ):
        assert producer.init_transactions() is None
        for value in (b"kept", b"dropped"):
            producer.begin()
            producer.send("t", value, partition=0)
            producer.send_offsets({tp: 7}, "g")
            (producer.commit if value == b"kept" else producer.abort)()
        with pytest.raises(ValueError, match="no"), producer.transaction():  # noqa: PT012
            producer.send("t", b"raised")
            raise ValueError("no")
        with producer.transaction():
            producer.send("t", b"block")
        assert producer.state is State.READY
        with client.consumer(
            isolation_level=READ_COMMITTED, group_id="h", auto_offset_reset="earliest"
        ) as reader:
            assert reader.group_metadata.group_id == "h"
            reader.assign([tp])
            seen = []
            while len(seen) < 2:
                seen += [record.value for record in reader.poll()]
        assert seen == [b"kept", b"block"]
        assert client.call(client.admin.committed, "g")[tp].committed_offset == 7

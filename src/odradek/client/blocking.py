"""The client for code that is not asynchronous: the same calls, on an event loop in a thread of its own.

Only the way to call is different here; what the calls do is in client.py, admin.py, producer.py,
transactional.py and consumer.py. Producers and consumers are imported when one is made: most commands of the
command line need neither.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from odradek.client.admin import Admin
from odradek.client.client import GROUP_COORDINATOR, Client
from odradek.client.transaction_states import State
from odradek.core.types import TopicPartition
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.client.partition_reader import ConsumerRecord
    from odradek.client.producer import Delivery
    from odradek.client.transaction_requests import GroupMetadata
    from odradek.client.transactional import PreparedTransaction
    from odradek.records.batch import Headers

P = ParamSpec("P")
T = TypeVar("T")


class _Call(Coroutine[Any, Any, T]):
    """Work that is made where it is awaited. What is made before may never be, if an interrupt comes between,
    and of that Python warns."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._work: Coroutine[Any, Any, T] | None = None

    def send(self, value: Any) -> Any:
        if self._work is None:
            self._work = self._make()
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return super().throw(*error) if self._work is None else self._work.throw(*error)

    def close(self) -> None:
        if self._work is not None:
            self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._make().__await__()


class BlockingClient:
    """A client and its loop. `run` awaits anything on that loop; an interrupt of the caller cancels it."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], *, runtime: Runtime | None = None, **options: Any
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="odradek-client", daemon=True)
        self.client = Client(bootstrap_servers, runtime=runtime, **options)
        self.admin = Admin(self.client)
        self._closed = False
        self._thread.start()

    def __enter__(self) -> "BlockingClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """E.g. `call(client.admin.list_offsets, {...})`."""
        return self.run(_Call(partial(function, *args, **kwargs)))

    def send(self, api_key: int, request: Any, **options: Any) -> Any:
        """`Client.send`: one request to one broker (node_id=, version=, max_version=, timeout_ms=)."""
        return self.call(self.client.send, api_key, request, **options)

    def coordinator(self, key: str, key_type: int = GROUP_COORDINATOR) -> int:
        """The broker that coordinates a group, or a transactional id."""
        return self.call(self._coordinator, key, key_type)

    async def _coordinator(self, key: str, key_type: int) -> int:
        return await self.client.retrying(lambda: self.client.coordinator(key, key_type))

    def producer(self, **options: Any) -> "BlockingProducer":
        return BlockingProducer(self, options)

    def transactional_producer(
        self, transactional_id: str, **options: Any
    ) -> "BlockingTransactionalProducer":
        return BlockingTransactionalProducer(self, transactional_id, options)

    def consumer(self, **options: Any) -> "BlockingConsumer":
        return BlockingConsumer(self, options)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.call(self._finish)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _finish(self) -> None:
        """End the client, and what an interrupt left on the loop before `run` had its future."""
        await self.client.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class BlockingProducer:
    """`send` returns once the record is queued; `flush` waits, and raises the first failure since then."""

    def __init__(self, client: BlockingClient, options: Mapping[str, Any]) -> None:
        from odradek.client.producer import Producer

        self._client = client
        self._failure: BaseException | None = None

        async def make() -> Producer:
            return Producer(client.client, **options)

        self._producer = client.call(make)

    def __enter__(self) -> "BlockingProducer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: "Headers" = (),
        on_delivery: "Callable[[Delivery | None, BaseException | None], None] | None" = None,
    ) -> None:
        """`on_delivery` is called on the client's thread with the delivery or the error."""

        async def queue() -> None:
            future = await self._producer.send(
                topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
            future.add_done_callback(lambda done: self._on_done(done, on_delivery))

        self._client.call(queue)

    def deliver(self, topic: str, value: bytes | None, **options: Any) -> "Delivery":
        """Send one record and wait for it."""

        async def sent() -> "Delivery":
            return await (await self._producer.send(topic, value, **options))

        return self._client.call(sent)

    def flush(self) -> None:
        self._client.call(self._producer.flush)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        self._client.call(self._producer.close)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _on_done(
        self,
        future: "asyncio.Future[Delivery]",
        on_delivery: "Callable[[Delivery | None, BaseException | None], None] | None",
    ) -> None:
        error = future.exception()
        if error is not None and self._failure is None and on_delivery is None:
            self._failure = error
        if on_delivery is not None:
            on_delivery(None if error is not None else future.result(), error)


class BlockingTransactionalProducer:
    """`TransactionalProducer` for code that is not asynchronous. A record that fails makes `commit` raise."""

    def __init__(self, client: BlockingClient, transactional_id: str, options: Mapping[str, Any]) -> None:
        from odradek.client.transactional import TransactionalProducer

        self._client = client

        async def make() -> TransactionalProducer:
            return TransactionalProducer(client.client, transactional_id, **options)

        self.producer = client.call(make)

    def __enter__(self) -> "BlockingTransactionalProducer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> State:
        return self.producer.state

    def init_transactions(self, *, keep_prepared: bool = False) -> "PreparedTransaction | None":
        return self._client.call(self.producer.init_transactions, keep_prepared=keep_prepared)

    def begin(self) -> None:
        async def begun() -> None:
            self.producer.begin()

        self._client.call(begun)

    def send(self, topic: str, value: bytes | None, **options: Any) -> None:
        """Returns once the record is queued (key=, partition=, timestamp_ms=, headers=)."""

        async def queue() -> None:
            await self.producer.send(topic, value, **options)

        self._client.call(queue)

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: "GroupMetadata | str") -> None:
        self._client.call(self.producer.send_offsets, offsets, group)

    def commit(self) -> None:
        self._client.call(self.producer.commit)

    def abort(self) -> None:
        self._client.call(self.producer.abort)

    @contextmanager
    def transaction(self) -> Iterator["BlockingTransactionalProducer"]:
        """A transaction for a block: committed at its end, aborted if anything is raised in it."""
        self.begin()
        try:
            yield self
            self.commit()
        except BaseException:
            if self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
                self.abort()
            raise

    def prepare(self) -> "PreparedTransaction":
        return self._client.call(self.producer.prepare)

    def complete(self, decided: "PreparedTransaction") -> bool:
        return self._client.call(self.producer.complete, decided)

    def close(self) -> None:
        self._client.call(self.producer.close)


class BlockingConsumer:
    def __init__(self, client: BlockingClient, options: Mapping[str, Any]) -> None:
        from odradek.client.consumer import Consumer

        self._client = client

        async def make() -> Consumer:
            return Consumer(client.client, **options)

        self.consumer = client.call(make)

    def __enter__(self) -> "BlockingConsumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def assign(self, partitions: Sequence[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        self._on_loop(self.consumer.assign, partitions)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._on_loop(self.consumer.subscribe, topics)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._on_loop(self.consumer.seek, tp, offset)

    def position(self, tp: TopicPartition) -> int | None:
        return self.consumer.position(tp)

    @property
    def lost(self) -> OSError | None:
        return self.consumer.lost

    @property
    def assignment(self) -> list[TopicPartition]:
        return self.consumer.assignment

    @property
    def group_metadata(self) -> "GroupMetadata":
        return self.consumer.group_metadata

    def poll(self, timeout_ms: float = 1_000, max_records: int = 500) -> "list[ConsumerRecord]":
        return self._client.call(self.consumer.poll, timeout_ms, max_records)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self._client.call(self.consumer.commit, offsets)

    def close(self) -> None:
        self._client.call(self.consumer.close)

    def _on_loop(self, function: Callable[..., None], *args: Any) -> None:
        async def called() -> None:
            function(*args)

        self._client.call(called)

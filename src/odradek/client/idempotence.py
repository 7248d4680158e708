"""The terms of a producer without transactions: it has a producer id if it is idempotent, else none."""

from odradek.client.batches import NOBODY
from odradek.client.client import Client, check
from odradek.client.transaction_errors import Step, Verdict, judge
from odradek.core.errors import KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_LAST_EPOCH = 32_767
_NO_TIMEOUT_MS = 60_000  # carried by every InitProducerId, meant only for transactions


class Idempotence:
    """`recovers` by raising the epoch on its own (KIP-360): brokers take a higher one from sequence 0."""

    transactional_id: str | None = None
    max_produce_version: int | None = None

    def __init__(self, client: Client, *, idempotent: bool) -> None:
        self._client = client
        self.recovers = idempotent
        self.identity: ProducerIdAndEpoch | None = None if idempotent else NOBODY

    async def prepare(self) -> None:
        if self.identity is None:
            self.identity = await self._new_identity()

    def on_queued(self, tp: TopicPartition) -> None:
        """Always allowed."""

    def admits(self, tp: TopicPartition) -> bool:
        return True

    async def renew(self) -> None:
        assert self.identity is not None
        producer_id, epoch = self.identity
        if epoch < _LAST_EPOCH:
            self.identity = ProducerIdAndEpoch(producer_id, epoch + 1)
        else:
            self.identity = await self._new_identity()

    def on_failure(self, error: Exception) -> Exception | None:
        """Refusals of the producer itself end it; all others concern their records only."""
        fatal = isinstance(error, KafkaError) and judge(Step.PRODUCE, error.code) is Verdict.FATAL
        return error if fatal and self.recovers else None

    async def _new_identity(self) -> ProducerIdAndEpoch:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=_NO_TIMEOUT_MS)

        async def attempt() -> ProducerIdAndEpoch:
            response = await self._client.ask_anyone(ApiKey.INIT_PRODUCER_ID, request)
            check(response.error_code, place="a producer id")
            return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

        return await self._client.retrying(attempt)

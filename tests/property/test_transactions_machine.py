"""The transaction coordinator under random producers, lost and repeated requests, failing logs and reloads.

The test reads the decisions from the log and compares everything with them: the answers to producers, the
markers in partitions, the state of a new leader. Every marker has a matching durable decision. In the end
every partition has its marker. Zombies are never served. No producer id is allocated twice. A replay of the
log gives the live state.
"""

from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.coordinators.transactions import commands as c
from odradek.coordinators.transactions.log_format import decode
from odradek.coordinators.transactions.metadata import MAX_EPOCH, TransactionMetadata
from odradek.coordinators.transactions.shard import TransactionShard
from odradek.coordinators.transactions.states import AT_REST, PREPARED, VALID_PREVIOUS, TxnState
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.types import NO_PRODUCER_EPOCH, ProducerIdAndEpoch, TopicPartition
from odradek.records.batch import iter_batches, iter_records
from tests.unit.coordinators.transactions.harness import START_MS, Harness, Written

IDS = ("x", "y")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
TIMEOUT_MS = 30_000
E = ErrorCode
S = TxnState

pick = st.integers(0, 1_000)
ids = st.sampled_from(IDS)
partitions = st.sampled_from(PARTITIONS)
outcomes = st.booleans()
mostly = st.integers(0, 4).map(lambda n: n > 0)


class Request(NamedTuple):
    """An EndTxn that was sent, and may arrive again."""

    tid: str
    producer: ProducerIdAndEpoch
    commit: bool
    version: int
    connection: int


class Client:
    """A producer, and what it knows."""

    def __init__(self, tid: str, version: int, identity: ProducerIdAndEpoch, connection: int) -> None:
        self.tid = tid
        self.version = version
        self.identity = identity
        self.connection = connection
        self.added: set[TopicPartition] = set()
        self.began: int | None = None
        """The log end offset before its first partition was taken."""
        self.unsure: bool | None = None
        """The outcome that it asked for without an answer: it has to ask again."""


class TransactionMachine(RuleBasedStateMachine):
    @initialize(server_version=st.sampled_from([1, 2, 2]), exhausted=st.booleans())
    def start(self, server_version: int, exhausted: bool) -> None:
        self.h = Harness(server_version=server_version, id_expiration_ms=200_000)
        deliver = self.h._arrive

        def arrive(written: Written) -> Any:
            self.check_marker(written)
            return deliver(written)

        self.h._arrive = arrive  # type: ignore[method-assign]
        self.clients: list[Client] = []
        self.newest: dict[str, Client] = {}
        self.requests: list[Request] = []
        self.markers: dict[int, set[TopicPartition]] = {}
        """By the offset of the decision: the partitions that have its marker."""
        if exhausted:
            for number, tid in enumerate(IDS):
                epoch = MAX_EPOCH - 2
                txn = TransactionMetadata(tid, 10 + number, epoch, TIMEOUT_MS, S.EMPTY)
                self.h.put(txn._replace(last_update_ms=START_MS))

    def teardown(self) -> None:
        if not hasattr(self, "h"):
            return
        self.quiesce()
        self.h.close()

    # --- the log, as anybody can read it --------------------------------------------------------------

    def history(self, tid: str) -> list[tuple[int, TransactionMetadata | None]]:
        """Everything the log says of an id, with offsets."""
        found = []
        for _, data in self.h.log.batches:
            for batch in iter_batches(data):
                for record in iter_records(data, batch):
                    decoded = decode(record.key, record.value)
                    assert decoded is not None
                    if decoded[0] == tid:
                        found.append((record.offset, decoded[1]))
        return found

    def decision_after(self, tid: str, offset: int) -> TransactionMetadata | None:
        for at, txn in self.history(tid):
            if at >= offset and txn is not None and txn.state in PREPARED:
                return txn
        return None

    def check_marker(self, written: Written) -> None:
        """A marker has a decision behind it that is committed, and is the last word on its id."""
        for tid in IDS:
            history = self.history(tid)
            if not history or history[-1][1] is None:
                continue
            offset, txn = history[-1]
            assert txn is not None
            if txn.producer_id == written.producer.producer_id and txn.state in PREPARED:
                assert offset < self.h.log.high_watermark, "the decision could still be lost"
                assert written.producer == ProducerIdAndEpoch(txn.producer_id, txn.producer_epoch)
                assert written.commit is (txn.state is S.PREPARE_COMMIT)
                assert set(written.partitions) <= set(txn.partitions)
                refused = self.h.refusals
                taken = {tp for tp in written.partitions if tp not in refused}
                self.markers.setdefault(offset, set()).update(taken)
                return
        raise AssertionError(f"a marker of {written.producer} without a decision")

    # --- what producers do ----------------------------------------------------------------------------

    @rule(tid=ids, version=st.sampled_from([0, 2, 2]), two_phase=st.booleans(), keep=st.booleans())
    def a_producer_begins(self, tid: str, version: int, two_phase: bool, keep: bool) -> None:
        self._begin(tid, version, two_phase, keep and two_phase)

    def _begin(self, tid: str, version: int, two_phase: bool, keep: bool) -> None:
        connection = self.h.connect()
        task = self.h.start(
            lambda: self.h.coordinator.init_producer_id(
                tid, TIMEOUT_MS, None, connection, enable_2pc=two_phase, keep_prepared=keep
            )
        )
        if not task.done() or task.exception() is not None:
            return
        given = task.result()
        client = Client(tid, version, ProducerIdAndEpoch(given.producer_id, given.producer_epoch), connection)
        if given.ongoing.producer_id != -1:
            # It decides what another has begun, and has not done so yet.
            client.began = self.h.log.log_end_offset
        self.clients.append(client)
        self.newest[tid] = client

    @rule(tid=ids, version=st.sampled_from([0, 2]), tp=partitions, commit=outcomes, heard=st.booleans())
    def a_whole_transaction(
        self, tid: str, version: int, tp: TopicPartition, commit: bool, heard: bool
    ) -> None:
        """Begun and ended by the producer at hand, so that ends, and what overtakes them, are common."""
        if tid not in self.newest or self.newest[tid].version != version:
            self._begin(tid, version, False, False)
        if tid in self.newest:
            self._add(self.newest[tid], tp)
            self._end(self.newest[tid], commit, heard)
            if not heard:
                self._end(self.newest[tid], commit, True)
            self._add(self.newest[tid], tp)

    def _client(self, which: int) -> Client:
        return self.clients[-1 - which % min(len(self.clients), 4)]

    @precondition(lambda self: self.clients)
    @rule(which=pick)
    def a_producer_recovers_by_name(self, which: int) -> None:
        """KIP-360: after an error it asks for the next epoch, naming the one it has."""
        client = self._client(which)
        is_forgotten = client.tid not in self.h.shard.transactions
        task = self.h.start(
            lambda: self.h.coordinator.init_producer_id(
                client.tid, TIMEOUT_MS, client.identity, client.connection
            )
        )
        if not task.done() or task.exception() is not None:
            return
        if is_forgotten:
            self.newest[client.tid] = client  # nobody knows of its successors any more
        assert self.newest[client.tid] is client, "a zombie got an epoch"
        client.identity = ProducerIdAndEpoch(*task.result()[:2])
        client.added, client.began, client.unsure = set(), None, None

    @precondition(lambda self: self.clients)
    @rule(which=pick, tp=partitions)
    def a_producer_adds(self, which: int, tp: TopicPartition) -> None:
        self._add(self._client(which), tp)

    def _add(self, client: Client, tp: TopicPartition) -> None:
        if client.unsure is not None:
            return
        before = self.h.log.log_end_offset
        task = self.h.start(
            lambda: self.h.coordinator.add_partitions(
                client.tid, client.identity, [tp], client.version, client.connection
            )
        )
        if task.done() and task.exception() is None:
            assert self.newest[client.tid] is client, "a zombie added a partition"
            client.added.add(tp)
            if client.began is None:
                client.began = before

    @precondition(lambda self: self.clients)
    @rule(which=pick, commit=outcomes, heard=mostly)
    def a_producer_ends(self, which: int, commit: bool, heard: bool) -> None:
        self._end(self._client(which), commit, heard)

    def _end(self, client: Client, commit: bool, heard: bool) -> None:
        if client.unsure is not None:
            commit = client.unsure
        request = Request(client.tid, client.identity, commit, client.version, client.connection)
        answer = self._send(request)
        if not heard or answer is None:
            client.unsure = commit
            client.connection = self.h.connect()
        elif isinstance(answer, ProducerIdAndEpoch):
            self._ended(client, commit, answer)

    def _send(self, request: Request) -> ProducerIdAndEpoch | KafkaError | None:
        """The answer, the refusal, or None where neither came."""
        self.requests = [*self.requests[-6:], request]
        task = self.h.start(
            self.h.end_step(
                request.producer,
                request.commit,
                tid=request.tid,
                version=request.version,
                connection=request.connection,
            )
        )
        if not task.done():
            return None
        error = task.exception()
        if isinstance(error, KafkaError):
            return error
        return None if isinstance(error, ProtocolError) else task.result()

    def _ended(self, client: Client, commit: bool, answer: ProducerIdAndEpoch) -> None:
        assert self.newest[client.tid] is client, "a zombie ended a transaction"
        if client.added and client.began is not None:
            decision = self.decision_after(client.tid, client.began)
            assert decision is not None, "told of an end that is not in the log"
            assert (decision.state is S.PREPARE_COMMIT) is commit
            assert client.added <= set(decision.partitions)
        if client.version >= 2:
            client.identity = answer
        client.added, client.began, client.unsure = set(), None, None

    @precondition(lambda self: self.requests)
    @rule(which=pick)
    def an_old_request_arrives_again(self, which: int) -> None:
        """It ends nothing but the transaction that it was sent for."""
        request = self.requests[which % len(self.requests)]
        newest = self.newest[request.tid]
        if request.version < 2 and request.connection >= newest.connection:
            return  # a connection does not repeat what it carried
        live = self.h.shard.transactions.get(request.tid)
        answer = self._send(request)
        after = self.h.shard.transactions.get(request.tid)
        is_open = live is not None and live.state is S.ONGOING
        if is_open and (request.version < 2 or live.client != request.producer):
            assert after is not None
            assert after.state is S.ONGOING, f"{request} ended another's transaction: {answer}"

    # --- what happens to them -------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 150, 5_000, 11_000, 45_000, 210_000]))
    def time_passes(self, ms: int) -> None:
        self.h.advance(ms)

    @rule(ms=st.sampled_from([-100_000, -5_000, 5_000, 60_000]))
    def the_clock_jumps(self, ms: int) -> None:
        self.h.clock.skew_ms += ms

    @rule(code=st.sampled_from([None, None, E.NOT_ENOUGH_REPLICAS, E.KAFKA_STORAGE_ERROR]))
    def the_log_fails_or_recovers(self, code: ErrorCode | None) -> None:
        self.h.log.error = None if code is None else KafkaError(code)

    @rule(held=st.booleans())
    def the_high_watermark_stands_or_moves(self, held: bool) -> None:
        self.h.log.held = held
        if not held:
            self.h.commit_log()

    @rule(slow=st.booleans())
    def markers_linger_or_arrive(self, slow: bool) -> None:
        if slow:
            self.h.slow_markers = True
        else:
            self.h.let_markers_through()

    @rule(tp=partitions, how=st.integers(0, 3))
    def a_partition_changes(self, tp: TopicPartition, how: int) -> None:
        self.h.leaderless.discard(tp)
        self.h.refusals.pop(tp, None)
        if how == 1:
            self.h.leaderless.add(tp)
        elif how == 2:
            self.h.refusals[tp] = E.NOT_ENOUGH_REPLICAS

    @rule()
    def the_coordinator_moves(self) -> None:
        """With the node: no connection survives that."""
        self.requests = [request for request in self.requests if request.version >= 2]
        self.h.reload()

    @rule(dry=st.booleans())
    def producer_ids_run_dry_or_come(self, dry: bool) -> None:
        self.h.ids_are_dry = dry

    @rule()
    def unused_ids_are_swept(self) -> None:
        self.h.start(lambda: self.h.coordinator.host.submit(0, c.ExpireIds()))

    # --- what must always hold ------------------------------------------------------------------------

    def quiesce(self) -> None:
        """Heal everything and wait: what is decided is everywhere, and nothing is open past its time."""
        h = self.h
        h.log.error, h.log.held, h.ids_are_dry = None, False, False
        h.clock.skew_ms = max(0, h.clock.skew_ms)
        h.leaderless.clear()
        h.refusals.clear()
        h.commit_log()
        h.let_markers_through()
        h.reload()
        # Written while the clock was ahead, a transaction may be younger than it should be.
        h.advance(TIMEOUT_MS + 200_000)
        for tid, txn in h.shard.transactions.items():
            assert txn.state in AT_REST or (txn.state is S.ONGOING and not txn.has_timeout), f"{tid}: {txn}"
            for offset, past in self.history(tid):
                if past is not None and past.state in PREPARED:
                    assert self.markers.get(offset, set()) >= set(past.partitions)
        assert len(h.coordinator.markers) == 0

    @invariant()
    def replaying_the_log_gives_the_live_state(self) -> None:
        if not hasattr(self, "h"):
            return
        live = self.h.shard
        copy = TransactionShard(live.config, 0, lambda: 0, lambda: 2)
        for tid in IDS:
            for offset, txn in self.history(tid):
                copy.replay(tid, txn, offset, -1)
        known = {t: m._replace(last_producer_epoch=NO_PRODUCER_EPOCH) for t, m in live.transactions.items()}
        assert copy.transactions == known

    @invariant()
    def the_log_tells_a_lawful_story(self) -> None:
        if not hasattr(self, "h"):
            return
        owners: dict[int, str] = {}
        for tid in IDS:
            last: TransactionMetadata | None = None
            used: list[int] = []
            for _, txn in self.history(tid):
                if txn is not None:
                    if last is not None:
                        assert last.state in VALID_PREVIOUS[txn.state], f"{last} then {txn}"
                        if last.producer_id == txn.producer_id:
                            assert txn.producer_epoch >= last.producer_epoch
                        else:
                            assert txn.producer_id not in used, "a producer id came back"
                    if txn.producer_id not in used:
                        used.append(txn.producer_id)
                    assert txn.client.producer_epoch < MAX_EPOCH or txn.state in PREPARED | AT_REST
                last = txn
            for producer_id in used:
                assert owners.setdefault(producer_id, tid) == tid, "a producer id was given twice"


TransactionMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestTransactionsHoldTheirPromises = TransactionMachine.TestCase

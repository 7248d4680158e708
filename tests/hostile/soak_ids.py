"""`make soak-ids`: a node with many transactional ids, over sockets: memory, restart, lists, expiry.

For each step it reports its time, the memory of the node, and the longest wait of short requests on a second
connection. The longest callback is shorter than that.
"""

import argparse
import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import request_types, response_decoder
from tests.hostile.others import Others
from tests.hostile.sides import Process, answer
from tests.support.node import NodeProcess

AT_A_TIME = 200
"""Requests on their way at once."""
TIMEOUT_S = 300.0
EXPIRING = (
    "transactional.id.expiration.ms=1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms=5000",
)


def request(api_key: ApiKey, version: int, name: str, **fields: Any) -> bytes:
    return encode_request(api_key, version, 1, "soak", getattr(request_types(api_key), name)(**fields))


def decoded(api_key: ApiKey, version: int, frame: bytes | None) -> Any:
    assert frame is not None, f"the node hung up on {api_key.name}"
    _, position = parse_response_header(frame, 0, api_key, version)
    return response_decoder(api_key, version)(frame, position)[0]


def init(transactional_id: str) -> bytes:
    return request(
        ApiKey.INIT_PRODUCER_ID,
        5,
        "InitProducerIdRequest",
        transactional_id=transactional_id,
        transaction_timeout=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )


class Soak:
    def __init__(self, directory: Path, count: int) -> None:
        self._directory = directory
        self.ids = [f"transactional-id-{i:06d}" for i in range(count)]

    def run(self) -> None:
        node = NodeProcess(self._directory / "data")
        try:
            process = Process(node.bootstrap, node.pid, TIMEOUT_S)
            self._prepare(process)
            before_mb = process.rss_mb()
            with told(process, f"InitProducerId of {len(self.ids):,} ids"):
                self._init_all(process)
            bytes_each = (process.rss_mb() - before_mb) * (1 << 20) / len(self.ids)
            print(f"  {before_mb:.0f} MB before: {bytes_each:,.0f} bytes for each id")
            self._ask(process)
            node.stop(timeout_s=60)
            self._restarted(node, "a restart")
            self._ask(Process(node.bootstrap, node.pid, TIMEOUT_S))
            node.kill()
            node = NodeProcess(node.data_dir, *itertools.chain(*(("--set", pair) for pair in EXPIRING)))
            process = Process(node.bootstrap, node.pid, TIMEOUT_S)
            with told(process, "expiry of all of them"):
                self._until(process, lambda found: found.error_code == 0 and not found.transaction_states)
        finally:
            node.kill()

    def _prepare(self, process: Process) -> None:
        """`__transaction_state` comes with its first user."""
        with process.client() as client:
            for _ in range(1_000):
                frame = process.ask(client, init("first"))
                if decoded(ApiKey.INIT_PRODUCER_ID, 5, frame).error_code == 0:
                    return
                with contextlib.suppress(AssertionError):
                    ask = request(
                        ApiKey.FIND_COORDINATOR,
                        6,
                        "FindCoordinatorRequest",
                        key="",
                        key_type=1,
                        coordinator_keys=self.ids[:1],
                    )
                    process.ask(client, ask)
                process.wait_until_idle()
        raise AssertionError("no coordinator")

    def _init_all(self, process: Process) -> None:
        with process.client() as client:
            for start in range(0, len(self.ids), AT_A_TIME):
                some = self.ids[start : start + AT_A_TIME]
                client.sendall(b"".join(init(name) for name in some))
                for name in some:
                    given = decoded(ApiKey.INIT_PRODUCER_ID, 5, answer(client))
                    assert given.error_code == 0, f"{name}: {ErrorCode(given.error_code).name}"

    def _ask(self, process: Process) -> None:
        with told(process, "ListTransactions of all"):
            found = self._list(process)
            assert len(found.transaction_states) == len(self.ids) + 1, found.error_code
        with told(process, "DescribeTransactions of all"), process.client() as client:
            asked = request(
                ApiKey.DESCRIBE_TRANSACTIONS, 0, "DescribeTransactionsRequest", transactional_ids=self.ids
            )
            rows = decoded(ApiKey.DESCRIBE_TRANSACTIONS, 0, process.ask(client, asked)).transaction_states
            assert {row.error_code for row in rows} == {0} and len(rows) == len(self.ids)

    def _list(self, process: Process) -> Any:
        with process.client() as client:
            asked = request(
                ApiKey.LIST_TRANSACTIONS,
                1,
                "ListTransactionsRequest",
                state_filters=[],
                producer_id_filters=[],
            )
            return decoded(ApiKey.LIST_TRANSACTIONS, 1, process.ask(client, asked))

    def _until(self, process: Process, holds: Callable[[Any], bool]) -> None:
        while not holds(self._list(process)):
            time.sleep(0.02)

    def _restarted(self, node: NodeProcess, what: str) -> None:
        began = time.monotonic()
        node.restart()
        ready_s = time.monotonic() - began
        process = Process(node.bootstrap, node.pid, TIMEOUT_S)
        with told(process, f"{what}: ready after {ready_s:.2f} s, then loaded"):
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            self._until(process, lambda found: found.error_code != loading)


@contextlib.contextmanager
def told(process: Process, what: str) -> Iterator[None]:
    """Do something while others ask, and print what they saw."""
    asks = [request(ApiKey.API_VERSIONS, 0, "ApiVersionsRequest")]
    began = time.monotonic()
    with Others(process, asks) as others:
        yield
        took_s = time.monotonic() - began
    waited = f"others waited {max(others.waits_s) * 1e3:.0f} ms at most"
    print(f"{what:<55} {took_s:>6.1f} s, {process.rss_mb():>5.0f} MB, {waited}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak-ids", description=__doc__)
    parser.add_argument("--ids", type=int, default=100_000, help="how many (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-hostile-") as directory:
        Soak(Path(directory), args.ids).run()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

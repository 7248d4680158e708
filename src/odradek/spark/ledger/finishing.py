"""Committing the participants of a decision.

The driver does it after each decision. A run that comes after one that died does it before anything else:
until then readers see a part of a batch, or wait behind it.
"""

import asyncio
import logging

from odradek.client.client import Client
from odradek.client.transaction_errors import FENCED
from odradek.client.transaction_requests import RefusedError, TransactionRequests
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch
from odradek.spark.ledger.ledger import Decision, LedgerError, Participant, SupersededError, origin_of

_log = logging.getLogger(__name__)

CHANNEL = "ends"
"""The connections for ends of transactions, shared by all of them."""


class LostBatchError(LedgerError):
    """A decided transaction could not be committed: its records are gone."""


async def finish(client: Client, decision: Decision, run: str, timeout_s: float) -> None:
    """Commit the participants of a decision, all at the same time. To do it again changes nothing."""
    await asyncio.gather(*(commit_one(client, each, run, timeout_s) for each in decision.participants))


async def finish_early(client: Client, decision: Decision, run: str, timeout_s: float) -> None:
    """As `finish`, by who only came across the decision: what is wrong with it, the driver tells when it
    finishes the batch itself."""
    try:
        await finish(client, decision, run, timeout_s)
    except LedgerError as e:
        _log.warning("batch %d was decided, but is not committed everywhere yet: %s", decision.batch, e)


async def commit_one(client: Client, participant: Participant, run: str, timeout_s: float) -> None:
    requests = TransactionRequests(client, participant.transactional_id, channel=CHANNEL)
    identity = ProducerIdAndEpoch(participant.producer_id, participant.producer_epoch)
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        await requests.end(identity, True, deadline, version_1=False)
    except RefusedError as e:
        if e.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            return  # completed so long ago that the coordinator has forgotten the id
        origin = origin_of(participant.transactional_id)
        if e.code in FENCED and origin is not None and origin.run != run:
            # Only its own run uses an id again, and only when the batch is finished.
            raise SupersededError(
                f"{participant.transactional_id} was decided to be committed, but was used since: "
                f"run {origin.run} of this query is alive and ahead: two drivers use one checkpoint. "
                f"If it is not alive, somebody ended the transaction by hand, and {participant.rows} records "
                "are lost"
            ) from e
        raise LostBatchError(
            f"{participant.transactional_id} was decided to be committed, but is not: {e}. "
            f"{participant.rows} records are lost"
        ) from e

"""The settings of the transaction coordinator, read once from the node's configuration."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.core.configs import NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    abort_interval_ms: int = 10_000
    """How often the coordinator looks for transactions over their timeout."""
    remove_interval_ms: int = 3_600_000
    """How often the coordinator looks for unused transactional ids."""
    two_phase_commit: bool = True
    load_buffer_bytes: int = 5_242_880
    commit_timeout_ms: int = 30_000

    @classmethod
    def from_node(cls, config: "NodeConfig") -> "TransactionConfig":
        return cls(
            max_timeout_ms=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            abort_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            remove_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            two_phase_commit=config.bool("transaction.two.phase.commit.enable"),
            load_buffer_bytes=config.int("transaction.state.log.load.buffer.size"),
            commit_timeout_ms=config.int("request.timeout.ms"),
        )

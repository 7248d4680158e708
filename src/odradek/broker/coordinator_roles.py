"""Connects each internal topic with its coordinator."""

from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.replication.led_log import LedLog
from odradek.replication.partition import Partition


class CoordinatorRoles:
    """A coordinator loads the partitions that this broker leads, and drops those that it no longer leads."""

    __slots__ = ("_groups", "_transactions")

    def __init__(self, groups: GroupCoordinator, transactions: TransactionCoordinator) -> None:
        self._groups = groups
        self._transactions = transactions

    def elected(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        if topic == GROUP_METADATA_TOPIC:
            self._groups.on_elected(index, LedLog(partition))
        elif topic == TRANSACTION_STATE_TOPIC:
            self._transactions.on_elected(index, LedLog(partition))

    def resigned(self, tp: TopicPartition) -> None:
        if tp.topic == GROUP_METADATA_TOPIC:
            self._groups.on_resigned(tp.partition)
        elif tp.topic == TRANSACTION_STATE_TOPIC:
            self._transactions.on_resigned(tp.partition)

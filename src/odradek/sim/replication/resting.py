"""What the replicas of a simulated cluster have at rest, read past their system calls."""

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.metadata.image import MetadataImage
from odradek.records.header import iter_batches
from odradek.replication.isr import CommittedIsr
from odradek.sim.replication.at_rest import Producer, Resting
from odradek.sim.world.cluster import SimHost
from odradek.sim.world.volume import Volume


def resting(node: Node, volume: Volume, tp: TopicPartition) -> Resting:
    log = node.replicas.partitions[tp].log
    batches: dict[int, bytes] = {}
    last_epoch = -1
    for segment in log.segments.all():
        data = volume.find_file(segment.file.path).data.read(0, segment.size)
        for meta in iter_batches(data):
            if meta.last_offset >= log.log_start_offset:
                batches[meta.base_offset] = data[meta.position : meta.position + meta.size]
                last_epoch = meta.partition_leader_epoch
    return Resting(
        start=log.log_start_offset,
        high_watermark=log.high_watermark,
        end=log.log_end_offset,
        batches=batches,
        epochs=tuple(entry for entry in log.epochs.entries if entry[0] <= last_epoch),
        producers=_producers(log),
        aborted=frozenset(),
    )


def _producers(log: Log) -> dict[int, Producer]:
    """Without what differs after a restart: it knows only the last batch of each."""
    return {
        entry.producer_id: Producer(entry.producer_epoch, entry.last_sequence, entry.last_offset)
        for entry in log.producers.entries.values()
    }


def restless(hosts: dict[int, SimHost], image: MetadataImage) -> str | None:
    """Why the replicas are not at rest yet: the first reason; None if they are."""
    nodes = {node_id: host.node for node_id, host in hosts.items() if isinstance(host.node, Node)}
    for topic in image.topics_by_name.values():
        for index, state in topic.partitions.items():
            tp = TopicPartition(topic.name, index)
            if not state.has_leader or len(state.isr) < len(state.replicas):
                return f"{tp} is {state}"
            for replica in state.replicas:
                node = nodes.get(replica)
                partition = None if node is None else node.replicas.partitions.get(tp)
                if partition is None or partition.leader_epoch != state.leader_epoch:
                    return f"{tp} on {replica} is not at leader epoch {state.leader_epoch}"
                log, leader = partition.log, partition.leader
                if log.high_watermark != log.log_end_offset:
                    return (
                        f"{tp} on {replica} has high watermark {log.high_watermark} of {log.log_end_offset}"
                    )
                if leader is not None and type(leader.isr) is not CommittedIsr:
                    return f"{tp} on {replica} waits for {leader.isr}"
            ends = {nodes[n].replicas.partitions[tp].log.log_end_offset for n in state.replicas}
            if len(ends) > 1:
                return f"{tp} ends at {sorted(ends)}"
    return None

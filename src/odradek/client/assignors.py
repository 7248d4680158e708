"""How the leader of a classic consumer group shares out partitions: Kafka's range and round-robin. Pure."""

from collections.abc import Callable, Mapping, Sequence

from odradek.core.types import TopicPartition

Subscriptions = Mapping[str, Sequence[str]]
"""Topics by member id."""

Shares = dict[str, list[TopicPartition]]
Assignor = Callable[[Subscriptions, Mapping[str, Sequence[int]]], Shares]


def assign_range(subscriptions: Subscriptions, partitions: Mapping[str, Sequence[int]]) -> Shares:
    """Topic by topic: consecutive partitions to the members in order of their ids, the first get one more."""
    shares: Shares = {member: [] for member in sorted(subscriptions)}
    for topic in sorted(partitions):
        members = [member for member in shares if topic in subscriptions[member]]
        if not members:
            continue
        indexes = sorted(partitions[topic])
        each, more = divmod(len(indexes), len(members))
        start = 0
        for i, member in enumerate(members):
            end = start + each + (1 if i < more else 0)
            shares[member] += [TopicPartition(topic, index) for index in indexes[start:end]]
            start = end
    return shares


def assign_round_robin(subscriptions: Subscriptions, partitions: Mapping[str, Sequence[int]]) -> Shares:
    """All partitions in order, one to each member in turn, past members that did not ask for the topic."""
    shares: Shares = {member: [] for member in sorted(subscriptions)}
    members = list(shares)
    turn = 0
    for topic in sorted(partitions):
        if not any(topic in topics for topics in subscriptions.values()):
            continue
        for index in sorted(partitions[topic]):
            while topic not in subscriptions[members[turn % len(members)]]:
                turn += 1
            shares[members[turn % len(members)]].append(TopicPartition(topic, index))
            turn += 1
    return shares


ASSIGNORS: dict[str, Assignor] = {"range": assign_range, "roundrobin": assign_round_robin}
"""By the protocol name that members agree on, in order of preference."""

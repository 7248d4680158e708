"""A group's metadata hash is Kafka's to the bit: vectors from its own library and its own functions."""

import uuid

import pytest

from odradek.coordinators.groups.consumer.topic_hashes import TopicHashes, signed, topic_hash
from odradek.libraries.xxh3 import xxh3_64
from odradek.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration, TopicImage
from odradek.runtime.slices import Paced, at_once

ORDERS = uuid.UUID(int=0x0123456789ABCDEF_8EDCBA9876543210)
# XXH3 of hash4j over the bytes i * 31 + 7: every way in which lengths are mixed, and its edges.
VECTORS = """
0 3244421341483603138 1 5502495245947142431 2 -6349423698422726873 3 1582743943441612892
4 -2549016526957988167 5 -5579736752565435579 8 -2394039629164210130 9 -3754995788605292611
15 6079324691992009783 16 9099606716676871632 17 2345212530088924167 31 -6253418322204177903
32 278953543771952198 33 1844846513307983686 64 -2508381663727503547 65 -381843323958800864
96 -3295001992457868926 97 6981672134384256435 127 -6262838694800290624 128 -492175581222641016
129 -506823097681485574 130 3475138682099581770 160 -3960614606909185566 200 1368452603177808973
240 -3690920546649497853 241 809349449570470400 255 -8533440102264939110 256 -1403514104434996620
257 1364326762217215065 512 -1170120971253711958 1023 -1093476622474739461 1024 2575082683865311686
1025 -4566685497618039422 1088 -6815162950983329211 2000 1867670971709594125 5000 6169931020318013678
"""
NUMBERS = [int(number) for number in VECTORS.split()]


@pytest.mark.parametrize(("length", "hashed"), list(zip(NUMBERS[::2], NUMBERS[1::2], strict=True)))
def test_xxh3_of_every_length_class(length: int, hashed: int) -> None:
    assert signed(at_once(xxh3_64(bytes((i * 31 + 7) & 0xFF for i in range(length))))) == hashed


def topic(name: str, replicas: list[tuple[int, ...]]) -> TopicImage:
    partitions = {i: PartitionRegistration(r, r, r[0], 0, 0) for i, r in enumerate(replicas)}
    return TopicImage(name, ORDERS, partitions)


def broker(broker_id: int, rack: str | None) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 1, ORDERS, {}, rack, False, False, (), None, {})


def of_group(hashes: TopicHashes, names: set[str], image: MetadataImage) -> int:
    return at_once(hashes.of_group(names, image))


def test_a_topic_hashes_as_apache_hashes_it() -> None:
    image = MetadataImage(brokers={1: broker(1, None)})
    assert signed(at_once(topic_hash(topic("orders", [(1,), (1,)]), image))) == 2355661589382727103
    long = topic("a-much-longer.topic_name", [(1,)] * 100)
    assert signed(at_once(topic_hash(long, image))) == 6565118791448624216


def test_the_racks_of_replicas_count_in_their_own_order() -> None:
    image = MetadataImage(brokers={1: broker(1, "rack-a"), 2: broker(2, "rack-b")})
    assert signed(at_once(topic_hash(topic("orders", [(2, 1), (1,), (1, 2)]), image))) == -1199842836688411574


def test_a_group_hashes_the_topics_that_exist_by_name() -> None:
    a, b = topic("a", [(1,)]), topic("b", [(1,)])
    image = MetadataImage(topics_by_name={"b": b, "a": a})
    hashes = TopicHashes()
    assert of_group(hashes, {"c"}, image) == 0
    assert of_group(hashes, {"a", "b", "c"}, image) == of_group(TopicHashes(), {"b", "a"}, image)
    assert of_group(hashes, {"a"}, image) != of_group(hashes, {"b"}, image)


def test_group_hashes_are_apaches(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"a": -7, "b": 5}

    def hashed(topic: TopicImage, image: MetadataImage) -> Paced[int]:
        yield 1
        return known[topic.name] % (1 << 64)

    monkeypatch.setattr("odradek.coordinators.groups.consumer.topic_hashes.topic_hash", hashed)
    image = MetadataImage(topics_by_name={name: topic(name, [(1,)]) for name in ("b", "a")})
    assert of_group(TopicHashes(), {"a", "b"}, image) == -8589419398681722680


def test_a_topic_that_grew_is_hashed_anew() -> None:
    hashes = TopicHashes()
    small, grown = topic("t", [(1,)]), topic("t", [(1,), (1,)])
    before = of_group(hashes, {"t"}, MetadataImage(topics_by_name={"t": small}))
    assert of_group(hashes, {"t"}, MetadataImage(topics_by_name={"t": grown})) != before

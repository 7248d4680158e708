"""Which topics a consumer of the classic protocol subscribes to, read from its own bytes."""

import pytest

from odradek.coordinators.groups.classic.subscription import subscribed_topics
from tests.unit.coordinators.groups.harness import subscription


def test_topics_are_read_in_their_order() -> None:
    assert subscribed_topics(subscription("orders", "t", "u")) == ["orders", "t", "u"]
    assert subscribed_topics(subscription()) == []


def test_what_follows_the_topics_does_not_count() -> None:
    assert subscribed_topics(subscription("t") + b"more") == ["t"]
    assert subscribed_topics(subscription("t")[:-4]) == ["t"]


def test_an_empty_name_is_a_name() -> None:
    assert subscribed_topics(b"\0\0" + b"\0\0\0\x02" + b"\0\0" + b"\0\x01t") == ["", "t"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0\0",
        b"\xff\xff" + subscription("t")[2:],
        b"\0\0" + b"\xff\xff\xff\xff",
        b"\0\0" + b"\0\0\0\x01",
        b"\0\0" + b"\0\0\0\x01" + b"\xff\xff",
        b"\0\0" + b"\0\0\0\x01" + b"\0\x02t",
        b"\0\0" + b"\0\0\0\x01" + b"\0\x01\xff",
    ],
    ids=[
        "nothing",
        "half a count",
        "a negative version",
        "a negative count",
        "no topic",
        "a negative length",
        "half a topic",
        "no UTF-8",
    ],
)
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"subscription|topic|utf-8"):
        subscribed_topics(data)

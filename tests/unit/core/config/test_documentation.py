"""Every setting of DescribeConfigs has a text, and the text says whether the setting acts."""

import pytest

from odradek.core.config.documentation import (
    NO_EFFECT,
    REFUSED,
    _texts,
    broker_documentation,
    group_documentation,
    topic_documentation,
)
from odradek.core.config.keys import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS

KINDS = [
    (BROKER_KEYS, broker_documentation),
    (TOPIC_KEYS, topic_documentation),
    (GROUP_KEYS, group_documentation),
]


@pytest.mark.parametrize(("keys", "documentation"), KINDS, ids=["broker", "topic", "group"])
def test_a_key_has_a_text_where_it_acts_and_else_is_said_to_have_no_effect(keys, documentation):
    for name, key in keys.items():
        text = documentation(name)
        assert text
        assert (text in (NO_EFFECT, REFUSED)) == (not key.acts), name
        assert text.endswith("."), name


def test_no_text_is_left_of_a_key_that_does_not_act():
    for kind, keys in (("broker", BROKER_KEYS), ("topic", TOPIC_KEYS), ("group", GROUP_KEYS)):
        assert {name for name in _texts()[kind] if name not in keys or not keys[name].acts} == set()


@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_a_class_that_would_protect_is_not_said_to_have_no_effect(prefix):
    for name in ("authorizer.class.name", "principal.builder.class", "sasl.server.callback.handler.class"):
        assert broker_documentation(prefix + name) == REFUSED


def test_the_default_of_a_topic_setting_is_documented_by_it():
    assert broker_documentation("log.retention.hours") == (
        "Default of retention.ms. " + topic_documentation("retention.ms")
    )


def test_a_listeners_own_setting_has_no_effect_and_an_unknown_one_no_text():
    assert broker_documentation("listener.name.plaintext.connections.max.idle.ms") == NO_EFFECT
    assert broker_documentation("no.such.key") is None

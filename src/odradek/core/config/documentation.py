"""What each setting does, in a sentence or two: the documentation that DescribeConfigs returns.

documentation.json has the texts of the keys that act. It is read at the first use.
"""

import json
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data

from odradek.core.config.keys import GROUP_KEYS, TOPIC_KEYS, ConfigKey, broker_key
from odradek.core.config.protection import PROTECTING_KEYS

NO_EFFECT = "Has no effect in Odradek."
REFUSED = "Not supported in Odradek: a node does not start with a class set here."


def topic_documentation(name: str) -> str:
    return _of(TOPIC_KEYS[name], _texts()["topic"])


def group_documentation(name: str) -> str:
    return _of(GROUP_KEYS[name], _texts()["group"])


def broker_documentation(name: str) -> str | None:
    """None for an unknown setting."""
    key = broker_key(name)
    if key is None:
        return None
    if key.name in PROTECTING_KEYS:
        return REFUSED
    if key.name != name:
        return NO_EFFECT  # no setting of a single listener acts
    return _of(key, _broker_texts())


def _of(key: ConfigKey, texts: Mapping[str, str]) -> str:
    return texts[key.name] if key.acts else NO_EFFECT


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    texts: Mapping[str, Mapping[str, str]] = json.loads(get_data(__package__, "documentation.json") or b"")
    return texts


@cache
def _broker_texts() -> Mapping[str, str]:
    """A setting that is only the default of a topic setting has that setting's text."""
    texts = _texts()
    defaults = {
        synonym: f"Default of {name}. {texts['topic'][name]}"
        for name, key in TOPIC_KEYS.items()
        if key.acts
        for synonym in key.synonyms
    }
    return {**defaults, **texts["broker"]}

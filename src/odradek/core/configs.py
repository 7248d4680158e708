"""The public names of the configuration package: keys, node and topic configuration, descriptions.

Other packages import from here. The code is in config/.
"""

from odradek.core.config.describe import (
    CONFIG_TYPES,
    ConfigEntry,
    ConfigSource,
    Synonym,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_topic,
)
from odradek.core.config.dynamic import validate_dynamic_broker_configs
from odradek.core.config.file import parse_properties
from odradek.core.config.group import validate_group_configs
from odradek.core.config.inert import Inert, inert_dynamic, inert_of, inert_static
from odradek.core.config.keys import (
    BROKER_KEYS,
    GROUP_KEYS,
    TIME_FAMILIES,
    TOPIC_KEYS,
    ConfigKey,
    is_known,
    nearest,
)
from odradek.core.config.listeners import Listener
from odradek.core.config.node import NodeConfig, node_defaults
from odradek.core.config.protection import check_protection
from odradek.core.config.topic import TopicConfig, validate_topic_config, validate_topic_configs
from odradek.core.config.values import ConfigError

__all__ = [
    "BROKER_KEYS",
    "CONFIG_TYPES",
    "GROUP_KEYS",
    "TIME_FAMILIES",
    "TOPIC_KEYS",
    "ConfigEntry",
    "ConfigError",
    "ConfigKey",
    "ConfigSource",
    "Inert",
    "Listener",
    "NodeConfig",
    "Synonym",
    "TopicConfig",
    "check_protection",
    "describe_broker",
    "describe_broker_default",
    "describe_group",
    "describe_topic",
    "inert_dynamic",
    "inert_of",
    "inert_static",
    "is_known",
    "nearest",
    "node_defaults",
    "parse_properties",
    "validate_dynamic_broker_configs",
    "validate_group_configs",
    "validate_topic_config",
    "validate_topic_configs",
]

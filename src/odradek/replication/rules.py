"""What a topic's configuration means for the records that producers send to it. Pure."""

from typing import TYPE_CHECKING

from odradek.records.check import CheckRules
from odradek.records.compression import CODECS

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

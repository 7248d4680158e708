"""Subscriptions by regular expression: checks a new expression, and resolves it against all topics.

All expressions of a group are resolved together, at most every ten seconds: when one is new, when a topic was
created, and at a regular interval. The matched topics are in the log, so that every coordinator has the same.
"""

import logging
from enum import Enum
from typing import TYPE_CHECKING

from odradek.coordinators.groups.consumer import targeting
from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ConsumerMember
from odradek.coordinators.groups.consumer.records import ResolvedRegex, regex_record, regex_tombstone
from odradek.coordinators.shard import CoordinatorResult, Now
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import MetadataImage
from odradek.runtime.slices import STEP, Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)

MIN_REFRESH_INTERVAL_MS = 10_000


class RegexChange(Enum):
    """How a heartbeat changed a member's regular expression."""

    NONE = 0
    UNRESOLVED = 1
    RESOLVED = 2
    """The matches of the new expression are known, or the member has none now: a new assignment is
    possible."""


def change(draft: GroupDraft, member: ConsumerMember, updated: ConsumerMember) -> Paced[RegexChange]:
    """`draft` already has the updated member, and its expression was checked."""
    old, new = member.subscribed_topic_regex, updated.subscribed_topic_regex
    if old == new:
        return RegexChange.NONE
    group = draft.group
    subscribed = group.subscribed_regexes
    if old and old not in subscribed and old in group.regexes:
        yield from draft.add(regex_tombstone(group.group_id, old))
    if not new:
        return RegexChange.RESOLVED if old else RegexChange.UNRESOLVED
    known = subscribed[new] > 1 and new in group.regexes
    return RegexChange.RESOLVED if known else RegexChange.UNRESOLVED


def check(group: ConsumerGroup, regex: str | None) -> Paced[None]:
    """Raise INVALID_REGULAR_EXPRESSION for an invalid expression. Expressions of other members are not
    checked again."""
    from odradek.libraries.re2 import Pattern, PatternError  # few groups subscribe like this

    if not regex or regex in group.subscribed_regexes:
        return
    try:
        yield from Pattern.of(regex)
    except PatternError as e:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {e}.",
        ) from e


def refresh(shard: "GroupShard", group: ConsumerGroup, now: Now) -> Paced[CoordinatorResult]:
    """Resolve the group's expressions if that is due. If they match other topics, bump the group's epoch."""
    wanted = group.subscribed_regexes
    if not wanted or not _is_due(shard, group, wanted, now):
        return CoordinatorResult()
    image = shard.image()
    group.regex_refreshed_at_ms = now.steady_ms
    draft = GroupDraft(group)
    changed = False
    for regex in wanted:
        topics = yield from _matching(regex, image)
        known = group.regexes.get(regex)
        changed |= topics != (frozenset() if known is None else known.topics)
        resolved = ResolvedRegex(topics, image.offset, now.wall_ms)
        yield from draft.add(regex_record(group.group_id, regex, resolved))
    topics = yield from draft.group.collect_topics()
    metadata_hash = yield from gathered(shard.topic_hashes.of_group(topics, image))
    if changed or metadata_hash != group.metadata_hash:
        yield from targeting.bump_group_epoch(draft, metadata_hash)
    result = CoordinatorResult(None, draft.records)
    result.is_long = True
    return result


def _matching(regex: str, image: MetadataImage) -> Paced[frozenset[str]]:
    """An expression that another broker accepted and this one does not matches nothing."""
    from odradek.libraries.re2 import Pattern, PatternError

    try:
        pattern = yield from Pattern.of(regex)
    except PatternError as e:
        _log.error("Ignoring the regular expression %r of a loaded group: %s", regex, e)
        return frozenset()
    matching = []
    for name in image.topics_by_name:
        if (yield from pattern.matches(name)):
            matching.append(name)
        yield STEP // 2 + len(name) // 4
    return frozenset(matching)


def _is_due(shard: "GroupShard", group: ConsumerGroup, wanted: dict[str, int], now: Now) -> bool:
    last_ms = group.regex_refreshed_at_ms
    if last_ms is not None and now.steady_ms <= last_ms + MIN_REFRESH_INTERVAL_MS:
        return False
    version = max((resolved.version for resolved in group.regexes.values()), default=-1)
    return (
        wanted.keys() != group.regexes.keys()
        or version < shard.new_topics_version
        or last_ms is None
        or now.steady_ms > last_ms + shard.config.consumer_regex_refresh_interval_ms
    )

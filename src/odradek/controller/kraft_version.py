"""UpdateFeatures where it raises kraft.version, whose level is in the quorum's records, not the metadata's.

The replica says whether it can before anything is changed, and raises it after all else is.
"""

from typing import TYPE_CHECKING, Any

from odradek.controller.active import ActiveController
from odradek.core.errors import ErrorCode
from odradek.metadata.versions import KRAFT_VERSION, SUPPORTED_FEATURES
from odradek.raft.driver import RaftDriver
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.update_features import UpdateFeaturesRequest


async def update_features(
    raft: RaftDriver, active: ActiveController, request: "UpdateFeaturesRequest"
) -> Any:
    level = _upgrade(raft, request)
    refused = None if level is None else await _raise_to(raft, level, validate_only=True)
    if refused is not None:
        return refused
    response = await active.call(ApiKey.UPDATE_FEATURES, request)
    if level is None or response.error_code or request.validate_only:
        return response
    return await _raise_to(raft, level, validate_only=False) or response


def _upgrade(raft: RaftDriver, request: "UpdateFeaturesRequest") -> int | None:
    """The level of kraft.version to rise to; None where it stays, or features.py refuses it."""
    for update in request.feature_updates:
        if update.feature == KRAFT_VERSION and update.max_version_level in SUPPORTED_FEATURES[KRAFT_VERSION]:
            level: int = update.max_version_level
            return level if level > raft.facts.kraft_version else None
    return None


async def _raise_to(raft: RaftDriver, level: int, *, validate_only: bool) -> Any | None:
    """The answer to the client where it is refused."""
    answer = await raft.upgrade_kraft_version(level, validate_only=validate_only)
    if answer.error is ErrorCode.NONE:
        return None
    types = responses.update_features
    return types.UpdateFeaturesResponse(error_code=answer.error, error_message=answer.message)

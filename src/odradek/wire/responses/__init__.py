"""The classes of responses, by the name of their API: `responses.create_topics.CreatableTopicResult`.

They are built at the first use. Type checkers read the stubs in this folder; `make stubs` writes them from
wire/definitions.
"""

from typing import Any

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


def __getattr__(name: str) -> Any:
    try:
        types = response_types(ApiKey[name.upper()])
    except KeyError:
        raise AttributeError(f"there is no API {name}") from None
    globals()[name] = types  # later lookups do not call this function
    return types

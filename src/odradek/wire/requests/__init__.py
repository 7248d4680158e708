"""The classes of requests, by the name of their API: `requests.create_topics.CreatableTopic`.

They are built at the first use. Type checkers read the stubs in this folder; `make stubs` writes them from
wire/definitions.
"""

from typing import Any

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types


def __getattr__(name: str) -> Any:
    try:
        types = request_types(ApiKey[name.upper()])
    except KeyError:
        raise AttributeError(f"there is no API {name}") from None
    globals()[name] = types  # later lookups do not call this function
    return types

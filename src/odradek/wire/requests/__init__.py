"""The classes of requests, by the name of their API: `requests.create_topics.CreatableTopic`.

They are made when they are first asked for. The stubs beside this file tell a type checker what they are;
`make stubs` writes them from wire/definitions.
"""

from typing import Any

from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types


def __getattr__(name: str) -> Any:
    try:
        types = request_types(ApiKey[name.upper()])
    except KeyError:
        raise AttributeError(f"there is no API {name}") from None
    globals()[name] = types  # found without a call from now on
    return types

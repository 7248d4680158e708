"""What answers about ACLs and delegation tokens share: a node has no authorizer and no authentication."""

from typing import Any, Final

from odradek.core.errors import ProtocolError

ANONYMOUS_TYPE: Final = "User"
ANONYMOUS_NAME: Final = "ANONYMOUS"
"""Who every client is on a listener without authentication."""

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_AUTHORIZER_ON_BROKER: Final = "No Authorizer is configured on the broker"
NO_TIME: Final = -1

_UNKNOWN = 0


def check_acl(acl: Any) -> None:
    """ProtocolError where an ACL holds an element that nobody can know."""
    _check((acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type))


def check_acl_filter(asked: Any) -> None:
    """The same of a filter."""
    _check((asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type))


def _check(elements: tuple[int, ...]) -> None:
    if _UNKNOWN in elements:
        raise ProtocolError(f"ACL with an unknown element: {elements}")

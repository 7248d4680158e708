"""Common parts of the answers about ACLs and delegation tokens. A node has no authorizer and no
authentication."""

from typing import Any, Final

from odradek.core.errors import ProtocolError

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_AUTHORIZER_ON_BROKER: Final = "No Authorizer is configured on the broker"
NO_TIME: Final = -1

_UNKNOWN = 0


def check_acl(acl: Any) -> None:
    """Raise ProtocolError if an ACL has an unknown element."""
    _check((acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type))


def check_acl_filter(asked: Any) -> None:
    """Raise ProtocolError if an ACL filter has an unknown element."""
    _check((asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type))


def _check(elements: tuple[int, ...]) -> None:
    if _UNKNOWN in elements:
        raise ProtocolError(f"ACL with an unknown element: {elements}")

"""Control characters made visible: what a terminal would obey is shown as `\\u001b` instead. Pure.

Escaped are C0, DEL and C1, the characters that change the direction of text, line and paragraph separators,
and lone surrogates. The form is JSON's, so that JSON stays JSON.
"""

import re
from typing import Final

_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_OBEYED: Final = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_STRING: Final = re.compile(f"[\x00-\x1f{_OBEYED}]")
_IN_A_LAYOUT: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_OBEYED}]")


def escape_string(text: str) -> str:
    """A string of somebody else's, on one line: its line ends and tabs are escaped too."""
    return _IN_A_STRING.sub(_escape, text)


def escape_bytes(data: bytes) -> bytes:
    """The same for bytes; what is no UTF-8 is shown as `\\x9b`."""
    return escape_string(data.decode(errors="backslashreplace")).encode()


def escape_layout(text: str) -> str:
    """Text with a layout of our own: its line ends and tabs stay."""
    return _IN_A_LAYOUT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT.get(character) or f"\\u{ord(character):04x}"

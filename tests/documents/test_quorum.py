"""docs/quorum.md names the file in which the controller decides each request."""

import re

from odradek.controller.controller import _HANDLERS
from tests.documents.known import ROOT

_ROW = re.compile(r"^\| (?P<requests>[A-Z][\w, ]+).*? \| `(?P<file>controller/\w+\.py)`", re.M)


def test_every_request_to_the_controller_is_listed_with_the_file_that_decides_it() -> None:
    text = (ROOT / "docs/quorum.md").read_text()
    listed = {name: match["file"] for match in _ROW.finditer(text) for name in match["requests"].split(", ")}
    decided = {
        key.name.title().replace(
            "_", ""
        ): f"{handler.__module__.removeprefix('odradek.').replace('.', '/')}.py"
        for key, handler in _HANDLERS.items()
    }
    assert listed == decided

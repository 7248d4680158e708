"""What documents and messages tell people to install can be installed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FROM_AN_INDEX = re.compile(r"pip install[^\n`]*[ ']odradek(?![\w/])")


def test_odradek_is_installed_from_a_checkout_as_long_as_it_is_on_no_index() -> None:
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts
        for match in FROM_AN_INDEX.finditer(path.read_text())
        if "checkout of odradek" not in match[0]
    ]
    assert found == []
    assert FROM_AN_INDEX.search("pip install 'odradek[spark]'")
    assert FROM_AN_INDEX.search("pip install --no-cache-dir odradek 'pyarrow>=18'")

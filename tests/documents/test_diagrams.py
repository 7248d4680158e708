"""The diagrams of states in the documents are those of the tables that guard them."""

from tests.documents.diagrams import DOCS, TABLES, drawn, mermaid, names

PAGES = {page.name: page.read_text() for page in DOCS.glob("*.md")}


def test_every_diagram_is_up_to_date() -> None:
    assert [name for name, text in PAGES.items() if drawn(text) != text] == []


def test_every_table_is_drawn_once() -> None:
    assert sorted(name for text in PAGES.values() for name in names(text)) == sorted(TABLES)


def test_a_move_that_a_table_has_not_is_noticed() -> None:
    page = PAGES["transactions.md"]
    assert drawn(page.replace("    Ongoing --> PrepareCommit\n", "")) == page
    assert drawn(page.replace("    Ongoing --> PrepareCommit\n", "    Dead --> Ongoing\n")) == page


def test_a_diagram_begins_with_the_first_state_and_ends_where_nothing_follows() -> None:
    assert mermaid({"A": ["B", "A"], "B": []}).splitlines() == [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> A",
        "    A --> B",
        "    A --> A",
        "    B --> [*]",
        "```",
    ]

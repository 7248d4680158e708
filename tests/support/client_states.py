"""The states of a transactional producer as a table for docs/client.md, read from the code's own table.

`python -m tests.support.client_states` writes it there; a test holds that it is up to date.
"""

from pathlib import Path

from odradek.client.transaction_states import State, may_follow

DOCUMENT = Path(__file__).parents[2] / "docs/client.md"
BEGIN = "<!-- From here on: python -m tests.support.client_states -->\n"
END = "<!-- Up to here -->\n"


def table() -> str:
    lines = ["| from | to |", "|---|---|"]
    for previous in State:
        following = [s.name for s in State if may_follow(s, previous) and s is not State.FATAL_ERROR]
        lines.append(f"| {previous.name} | {', '.join(following)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def written() -> str:
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written())

"""Command lines with the output they gave, replayed against the broker under test.

A script is a text file: `$ odradek ...` lines, each followed by what it prints on stdout, then `! ` lines for
stderr and `= CODE` for an exit code other than 0. `$ printf ... | odradek ...` feeds stdin. `% ` lines do
what no command does: see transactions.py. <id>, <time>, <duration>, <offset> and <address> replace what
differs from run to run. ODRADEK_REWRITE_GOLDEN=1 writes the actual output into the scripts. They were
recorded with Apache Kafka 4.3.1 and are the same for Odradek.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.golden.cli import transactions
from tests.support.command import odradek

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
VARYING = (
    (re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z"), "<time>"),
    (re.compile(r"\b(?:[0-9.]+ (?:ms|s)|[0-9]+m[0-9]{2}s|[0-9]+h[0-9]{2}m)\b"), "<duration>"),
    (re.compile(r"(?<![\w-])(?=[\w-]*[a-z])[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"(?<=__consumer_offsets-47 is held at offset )[0-9]+"), "<offset>"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):[0-9]+"), "<address>"),
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_prints_what_it_printed(path: Path, bootstrap: str) -> None:
    script = path.read_text()
    heading = re.match(r"(?:#.*\n)*\n", script)
    lines = re.findall(r"^[$%] .*", script, re.MULTILINE)
    assert heading
    assert lines
    found = heading[0] + "".join(f"{line}\n{played(line[2:], bootstrap)}" for line in lines)
    if os.environ.get("ODRADEK_REWRITE_GOLDEN"):
        path.write_text(found)
    assert found == script


def played(line: str, bootstrap: str) -> str:
    """Run one line of a script; its output as the script has it."""
    if line.split()[0] in transactions.STEPS:
        return transactions.prepare(bootstrap, line)
    fed, pipe, command = line.partition(" | ") if line.startswith("printf ") else ("", "", line)
    stdin = shlex.split(fed)[1].encode().decode("unicode_escape").encode() if pipe else b""
    arguments = shlex.split(command)
    assert arguments[0] == "odradek", line
    outcome = odradek(*arguments[1:], stdin=stdin, ODRADEK_BOOTSTRAP_SERVERS=bootstrap)
    text = outcome.text + "".join(f"! {message}\n" for message in outcome.stderr.splitlines())
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text + (f"= {outcome.code}\n" if outcome.code else "")

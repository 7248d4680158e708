"""What a cluster stores or answers cannot command a terminal; a pipe gets it as it is."""

import json
import re
from collections.abc import Iterator

import confluent_kafka
import pytest

from tests.support.command import Outcome, odradek, odradek_on_terminal
from tests.support.group import Member
from tests.support.node import NodeProcess, running

# A title set by OSC, colour by CSI, CSI again as one C1 character, a reversed direction, an isolate, a mark,
# line and paragraph separators, a delete, a return, a line end and a tab.
EVIL = "a\x1b]0;pwned\x07\x1b[31m\x9b32m\u202e\u2066\u200f\u061c\u2028\u2029\x7f\r\n\tb"
SHOWN = r"a\u001b]0;pwned\u0007\u001b[31m\u009b32m\u202e\u2066\u200f\u061c\u2028\u2029\u007f\r\n\tb"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OWN = re.compile(r"\r\x1b\[K|\x1b\[31m\x1b\[1merror:\x1b\[0m")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with running(tmp_path_factory.mktemp("terminal") / "data") as process:
        settings = {"bootstrap.servers": process.bootstrap, "client.id": EVIL, "transactional.id": EVIL}
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("t", key=EVIL.encode(), value=EVIL.encode(), headers={EVIL: EVIL.encode()})
        producer.commit_transaction()
        producer.begin_transaction()
        producer.produce("t", value=b"\x9b31m not UTF-8 \xff")
        producer.flush()
        with Member(process.bootstrap, EVIL) as member:
            member.stabilise()
            member.commit("t", 0)
            yield process


def shown(node: NodeProcess, *arguments: str) -> str:
    """What a terminal is sent by a command, once it is seen to hold nothing that a terminal obeys."""
    outcome: Outcome = odradek_on_terminal(*arguments, "-b", node.bootstrap, TERM="xterm")
    text = outcome.text
    assert not FORBIDDEN.search(OWN.sub("", text)), text
    return text


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("text", SHOWN),
        ("%t %k %v %h\\n", f"t {SHOWN} {SHOWN} {SHOWN}={SHOWN}"),
        ("%v{hex} %h{%v{base64}}\\n", None),
        ("wide", None),
        ("csv", None),
    ],
)
def test_records_are_escaped(node: NodeProcess, template: str, line: str | None) -> None:
    lines = shown(node, "consume", "t", "-n", "1", "-f", template, "--isolation", "read_committed").split(
        "\n"
    )
    assert lines.pop() == ""
    assert len(lines) == (2 if template in ("wide", "csv") else 1), "a line end within a record is no line"
    assert "pwned" in lines[-1] or EVIL.encode().hex() in lines[-1]
    if line is not None:
        assert lines == [line]


def test_json_on_a_terminal_is_still_json(node: NodeProcess) -> None:
    text = shown(node, "consume", "t", "-n", "1", "-f", "jsonl", "--isolation", "read_committed")
    record = json.loads(text)
    assert (record["key"], record["value"], record["headers"]) == (EVIL, EVIL, [[EVIL, EVIL]])


def test_bytes_that_are_no_text_are_escaped(node: NodeProcess) -> None:
    text = shown(node, "consume", "t", "-o", "2", "-n", "1", "-f", "%v\\n", "--isolation", "read_uncommitted")
    assert text == "\\x9b31m not UTF-8 \\xff\n"


def test_raw_gives_the_bytes(node: NodeProcess) -> None:
    arguments = ("consume", "t", "-n", "1", "--isolation", "read_committed", "-b", node.bootstrap)
    assert odradek_on_terminal(*arguments, "--raw").stdout == EVIL.encode() + b"\n"


@pytest.mark.parametrize("output_format", ["text", "jsonl", "csv", "%k|%h|%t\\n"])
def test_a_pipe_gets_what_it_always_got(node: NodeProcess, output_format: str) -> None:
    arguments = ("consume", "t", "-n", "1", "--isolation", "read_committed", "-b", node.bootstrap)
    piped = odradek(*arguments, "-f", output_format).stdout
    assert "\x9b32m\u202e".encode() in piped
    assert piped == odradek_on_terminal(*arguments, "-f", output_format, "--raw").stdout


@pytest.mark.parametrize("output_format", ["wide", "csv"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("group", "list"),
        ("group", "describe", EVIL),
        ("group", "members", EVIL),
        ("group", "lag", EVIL),
        ("txn", "list"),
        ("txn", "describe", EVIL),
        ("txn", "producers", "t"),
        ("txn", "timeline", EVIL),
        ("consume", "t", "--outcome", "committed"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_names_are_escaped(node: NodeProcess, arguments: tuple[str, ...], output_format: str) -> None:
    text = shown(node, *arguments, "-f", output_format)
    assert "error:" not in text
    assert not re.search(r"^\s*b", text, re.MULTILINE), "a line end within a name is no line"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "describe", EVIL),
        ("topic", "create", EVIL),
        ("topic", "delete", EVIL, "-y"),
        ("consume", EVIL),
        ("group", "delete", EVIL, "-y"),
        ("group", "describe", EVIL + "2"),
        ("txn", "describe", EVIL + "2"),
        ("topic", "create", "u", "-c", f"{EVIL}=1"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_error_texts_are_escaped(node: NodeProcess, arguments: tuple[str, ...]) -> None:
    text = shown(node, *arguments)
    assert "error:" in text and "pwned" in text
    assert not re.search(r"^\s*b", text, re.MULTILINE), "an error is on the lines that are ours"


def test_a_file_that_is_dumped_is_escaped(node: NodeProcess) -> None:
    file = str(node.data_dir / "t-0" / "00000000000000000000.log")
    for output_format in ("text", "jsonl", "csv"):
        text = odradek_on_terminal("log", "dump", "--records", "-f", output_format, file, TERM="xterm").text
        assert "pwned" in text and not FORBIDDEN.search(OWN.sub("", text))


def test_a_completed_name_commands_nothing(node: NodeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    from odradek.cli.complete import complete_groups, complete_topics, complete_transactions

    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVERS", node.bootstrap)
    assert "t" in complete_topics("")
    assert complete_groups("a") == complete_transactions("a") == []


def test_what_a_person_reads_beside_the_data_is_escaped() -> None:
    import io

    from odradek.cli.terminal.terminal import Terminal

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    err = Tty()
    terminal = Terminal({"NO_COLOR": "1"}, stdin=Tty("y\n"), stderr=err)
    terminal.note(EVIL)
    terminal.redraw(EVIL)
    terminal.redraw_lines([EVIL], 1)
    assert terminal.ask(EVIL)
    terminal.error(EVIL, EVIL, hint=EVIL)
    written = re.sub(r"\r\x1b\[K|\x1b\[1A\r\x1b\[J", "", err.getvalue())
    assert not FORBIDDEN.search(written)
    assert written.endswith(f"error: {SHOWN}\n{SHOWN}\n  {SHOWN}\n")

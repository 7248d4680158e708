"""The tree of commands: complete, helpful, light, with the exit codes people script against."""

import subprocess
import sys
from typing import Any

import pytest

from odradek import __version__
from odradek.testing.broker import Broker
from tests.support.cli_reference import DOCUMENT, MARK, command_tree, leaves, reference
from tests.support.command import odradek

COMMANDS = leaves(command_tree())


VERBS = {
    "": "start up produce consume demo",
    "topic": "list create describe alter delete add-partitions trim",
    "group": "list describe lag members seek delete",
    "txn": "list describe producers timeline hanging commit abort",
    "pipeline": "init run status",
    "cluster": "info quorum health features format config logdirs",
    "log": "dump verify diff",
    "prove": "eos",
    "why": "stuck under-replicated",
    "sim": "run replay",
}


def test_every_verb_is_there() -> None:
    expected = [
        f"odradek {noun} {verb}".replace("  ", " ") for noun, verbs in VERBS.items() for verb in verbs.split()
    ]
    assert [name for name, _ in COMMANDS] == expected


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_everything_has_a_help_text(name: str, command: Any) -> None:
    assert command.help
    for parameter in command.params:
        assert parameter.help, parameter.name
        assert parameter.help.rstrip("]")[-1] not in ",", parameter.help
    assert odradek(*name.split()[1:], "--help").code == 0


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_shared_options_are_everywhere_the_same(name: str, command: Any) -> None:
    options = {option: parameter.name for parameter in command.params for option in parameter.opts}
    assert options.get("-b", "bootstrap_servers") == "bootstrap_servers"
    assert options.get("-y", "yes") == "yes"
    if "-o" in options:
        assert options["-o"] in ("offset", "offsets")
    if "start" not in name and "sim" not in name:
        assert "-f" in options


def test_ls_is_list() -> None:
    assert odradek("topic", "ls", "--help").code == 0
    assert odradek("group", "ls", "--help").code == 0
    assert odradek("txn", "ls", "--help").code == 0


def test_the_document_is_what_the_commands_say() -> None:
    assert DOCUMENT.read_text().partition(MARK)[2].strip() == reference().strip()


def test_usage_errors_exit_with_2() -> None:
    for arguments in (
        ["frob"],
        ["topic", "frob"],
        ["topic", "describe"],
        ["topic", "list", "--nope"],
        ["topic", "list", "-f", "jsn"],
        ["topic", "list", "--tz", "mars"],
        ["topic", "alter", "t"],
        ["start", "--set", "nope"],
        ["start", "--set", "log.retention.hour=1"],
        ["start", "--http", "x"],
        ["start", "--log-format", "xml"],
        ["start", "--config", "/nowhere/server.properties"],
        ["start", "--host", "0.0.0.0"],
    ):
        outcome = odradek(*arguments)
        assert (outcome.code, outcome.stdout) == (2, b""), (arguments, outcome)
        assert outcome.stderr


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("topic create x -p abc", "-p abc: not a number\n  next: odradek topic create --help"),
        ("consume t -n 0", "-n 0: at least 1\n  next: odradek consume --help"),
        (
            "topic add-partitions t --to x",
            "--to x: not a number\n  next: odradek topic add-partitions --help",
        ),
        ("topic frob", "no such command 'frob'\n  next: odradek topic --help"),
        ("topic describe", "missing argument 'TOPIC'\n  next: odradek topic describe --help"),
    ],
)
def test_a_usage_error_names_the_value_and_looks_like_any_other(line: str, error: str) -> None:
    outcome = odradek(*line.split())
    assert (outcome.code, outcome.text, outcome.stderr) == (2, "", f"error: {error}\n")


def test_a_noun_alone_shows_its_help() -> None:
    outcome = odradek("topic")
    assert (outcome.code, outcome.text) == (2, "")
    assert outcome.stderr.startswith("Usage: odradek topic ")


def test_nothing_listening_names_the_next_command() -> None:
    outcome = odradek("topic", "list", "-b", "127.0.0.1:1")
    assert (outcome.code, outcome.text) == (1, "")
    assert outcome.stderr == (
        "error: nothing listens on 127.0.0.1:1\n  is a node running? next: odradek start\n"
    )


def test_the_version_needs_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['odradek', '--version']\n"
        "from odradek.cli.main import main; main()\n"
        "heavy = {'typer', 'inspect', 'rich', 'kio', 'asyncio', 'json', 'odradek.core.configs'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"odradek {__version__}\n", "")


def test_a_list_needs_neither_typer_nor_producers_and_consumers() -> None:
    script = (
        "import sys; sys.argv = ['odradek', *sys.argv[1:]]\n"
        "from odradek.cli.main import run; code = run()\n"
        "heavy = {'typer', 'pydantic', 'rich', 'importlib.metadata', 'dataclasses', 'pathlib'}\n"
        "ours = {'odradek.cli.commands.group', 'odradek.core.configs', 'odradek.client.consumer',\n"
        "    'odradek.client.producer', 'odradek.client.transactional', 'odradek.records', 'odradek.log',\n"
        "    'odradek.broker'}\n"
        "found = (heavy | ours) & set(sys.modules)\n"
        "assert not found, found\n"
        "sys.exit(code)"
    )
    with Broker() as broker:
        arguments = ["topic", "list", "--internal", "-b", broker.bootstrap_servers]
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "TOPIC  PARTITIONS  REPLICAS\n", "")


def test_completion_offers_commands_without_anything_heavy() -> None:
    script = (
        "import os, sys; sys.argv = ['odradek']\n"
        "os.environ.update(_ODRADEK_COMPLETE='complete_bash', COMP_WORDS='odradek topic ', COMP_CWORD='2')\n"
        "from odradek.cli.main import run; run()\n"
        "heavy = {'rich', 'kio', 'asyncio', 'odradek.wire.messages'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["list", "create", "describe", "alter", "delete", "add-partitions", "trim"]

"""Plain command lines, read without typer: the same values as with it, and everything else left to it."""

import sys
from typing import Any
from unittest import mock

import pytest
import typer.main

from odradek.cli import app
from odradek.cli.declaring import Command, Noun
from odradek.cli.plain import read

PLAIN = (
    "topic list",
    "topic ls --internal --watch 2s",
    "topic list -b h:1 -X a=1 --property b=2 -f json -q --raw --tz local",
    "topic list --format={topic} --bootstrap-servers=h:1",
    "topic create a b -p 3 --replicas 2 -c x=1 --config y=2 --if-not-exists --dry-run",
    "topic create a -p -1",
    "topic trim -o -100 t",
    "topic add-partitions t --by 2 -y",
    "topic add-partitions --to=9 t --to 10",
    "consume t u -o @-1h -n 5 --follow -G ^x",
    "consume t --until-end",
    "consume - --regex",
    "produce t -k k -H a=1 -H b=2 -p 0 -z lz4 --acks 1 --tombstone",
    "group lag",
    "group lag a b --sample 5s",
    "txn list --state Ongoing --state Empty --producer-id 7 --producer-id 8",
    "txn timeline x -n 3",
    "txn abort x --force",
    "txn abort -t t -p 0 --start-offset 4",
    "log diff a b",
    "log dump a b --records -o 1:2",
    "pipeline run",
    "pipeline run some/where",
    "pipeline init new --sql",
    "demo --orders 100 --rate 10 --seed -3 --dir d",
    "prove eos --from a --to b --by key",
    "why stuck g",
    "cluster config --broker 1 --set a=1 --unset b",
    "sim run --seeds 1 --minutes 0.5 --transactions",
    "sim replay 7 --trace",
    "start --port 0 --set a=1 --set=b=2",
)
OTHER = (
    "topic",
    "topic frob",
    "topic list extra",
    "topic list --help",
    "topic list -h",
    "topic list --nope",
    "topic list --internal=yes",
    "topic list -b",
    "topic list --intern",
    "topic create a -p3",
    "topic create a -p three",
    "topic create a -p 1_000",
    "topic create a -p +3",
    "topic create -- a",
    "topic create -qy a",
    "topic trim t -o=5",
    "topic describe",
    "topic trim t",
    "topic add-partitions t --to 0",
    "consume t -n 0",
    "log diff a",
    "log diff a b c",
    "sim run --minutes nan",
    "sim run --minutes 1e3",
    "frob",
    "--version",
)


def read_plainly(line: list[str]) -> dict[str, Any] | None:
    noun, is_root = app._load(line[0], 0.0)
    verb = line if is_root else line[1:]
    command = noun.find(verb[0]) if verb else None
    return None if command is None else read(command.parameters, verb[1:])


def read_by_typer(line: list[str]) -> dict[str, Any]:
    """What typer would call the function with."""
    called: list[dict[str, Any]] = []
    load = app._load

    def recording(name: str, started_s: float) -> tuple[Noun, bool]:
        noun, is_root = load(name, started_s)
        copy = Noun()
        for command in noun.commands:
            copy.add(_recorded(command, called))
        return copy, is_root

    with mock.patch.object(app, "_load", recording), mock.patch.object(sys, "argv", ["odradek", *line]):
        typer.main.get_command(app.make_app())(args=line, standalone_mode=False)
    (values,) = called
    return values


def _recorded(command: Command, called: list[dict[str, Any]]) -> Command:
    return command._replace(function=lambda **values: called.append(values))


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_has_the_values_that_typer_gives(line: str) -> None:
    found = read_plainly(line.split())
    assert found is not None
    assert found == read_by_typer(line.split())


@pytest.mark.parametrize("line", OTHER)
def test_any_other_line_is_left_to_typer(line: str) -> None:
    with mock.patch.object(Noun, "find", _find_but_never_run):
        assert not app.run_plain(line.split(), 0.0)


def _find_but_never_run(noun: Noun, name: str) -> Command | None:
    def never(**values: Any) -> None:
        raise AssertionError(values)

    found = next((c for c in noun.commands if name in (c.name, *c.aliases)), None)
    return None if found is None else found._replace(function=never)


@pytest.mark.parametrize("word", ["", "\udcff"])
def test_empty_words_and_bytes_that_are_no_text_are_left_to_typer(word: str) -> None:
    assert read_plainly(["topic", "describe", word]) is None
    assert read_plainly(["topic", "describe", "t", "-b", word]) is None
    assert read_plainly(["topic", "describe", "t", "--bootstrap-servers="]) is None

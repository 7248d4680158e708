"""The command line as Markdown, read from the commands themselves: the second half of docs/cli.md.

`python -m tests.support.cli_reference` writes it there; a test holds that it is up to date.
"""

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import typer.main

DOCUMENT = Path(__file__).parents[2] / "docs/cli.md"
MARK = "<!-- From here on: python -m tests.support.cli_reference -->\n"


def command_tree() -> Any:
    from odradek.cli.app import make_app

    with mock.patch.object(sys, "argv", ["odradek"]):
        return typer.main.get_command(make_app())


def leaves(group: Any, prefix: str = "odradek") -> list[tuple[str, Any]]:
    """Every command that can be run, with its full name."""
    found = []
    for name, command in group.commands.items():
        if command.hidden:
            continue
        full = f"{prefix} {name}"
        found += leaves(command, full) if hasattr(command, "commands") else [(full, command)]
    return found


def reference() -> str:
    return "\n".join(_section(name, command) for name, command in leaves(command_tree()))


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
    usage = " ".join([name, *(_argument(a) for a in arguments), "[OPTIONS]"])
    lines = [f"### {name}", "", command.help.strip(), "", "```", usage, "```", ""]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{_names(option)}` | {_help(option)} |" for option in options]
        lines.append("")
    return "\n".join(lines)


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"{names} {option.metavar}".replace("|", "\\|") if option.metavar else names


def _help(option: Any) -> str:
    text = option.help.replace("|", "\\|")
    default = option.default
    if option.show_default and default not in (None, False, True, [], ()) and "[default" not in text:
        text += f" [default: {default}]"
    return text


if __name__ == "__main__":
    written = DOCUMENT.read_text().partition(MARK)[0]
    DOCUMENT.write_text(written + MARK + "\n" + reference())

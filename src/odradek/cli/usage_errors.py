"""typer's errors about a wrong command line, in the form of all other errors."""

from typing import Any

from typer.exceptions import TyperException

from odradek.cli.errors import Usage

# pydantic's kinds of error -> what they mean, with the bound where there is one.
_REASONS = {
    "int_parsing": "not a number",
    "int_from_float": "not a whole number",
    "float_parsing": "not a number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}


def usage_error(error: TyperException) -> Usage | None:
    """The usage error; None where nothing is wrong but that nothing was asked for: then help is due."""
    message: str = error.format_message()
    if message.startswith("Usage:"):
        return None
    context: Any = getattr(error, "ctx", None)
    hint = f"next: {context.command_path if context else 'odradek'} --help"
    parameter: Any = getattr(error, "param", None)
    find_invalid = getattr(error.__context__, "errors", None)
    if parameter is not None and find_invalid is not None:
        invalid = find_invalid()[0]
        reason = _REASONS.get(invalid["type"], invalid["msg"]).format(**invalid.get("ctx", {}))
        name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
        return Usage(f"{name} {invalid['input']}: {reason}", hint)
    return Usage(message[:1].lower() + message[1:].rstrip("."), hint)

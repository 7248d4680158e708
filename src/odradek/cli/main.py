"""The `odradek` command: it finds the command to run, and decides the exit code.

Everything heavy is imported by the command that needs it: `--version` and completion stay light.
"""

import sys
import time

_STARTED_S = time.monotonic()
_COMPLETING = "_ODRADEK_COMPLETE"
"""What a shell sets to ask for completions."""


def main() -> None:
    """The entry point of the `odradek` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from odradek import __version__

        print(f"odradek {__version__}")
        return
    sys.exit(run())


def run() -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 usage, 3 a check found a problem."""
    import os

    from odradek.cli.errors import FAILED, Failure, Failures
    from odradek.cli.terminal.terminal import ReaderGoneError, Terminal, UnwritableError

    try:
        return _dispatch()
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else FAILED if e.code else 0
    except Failure as e:
        for failure in e.failures if isinstance(e, Failures) else (e,):
            Terminal(os.environ).error(*failure.lines, hint=failure.hint)
        if isinstance(e, UnwritableError):
            _give_up_stdout()
        return e.exit_code
    except KeyboardInterrupt:
        return 130
    except ReaderGoneError:
        _give_up_stdout()
        return 0


def _give_up_stdout() -> None:
    """Nothing more can be written, and the flush at exit must not complain."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch() -> int:
    import os

    from odradek.cli.app import make_app, run_plain
    from odradek.cli.errors import USAGE

    if _COMPLETING not in os.environ and run_plain(sys.argv[1:], _STARTED_S):
        return 0
    from typer.exceptions import TyperException

    from odradek.cli.usage_errors import usage_error

    try:
        code = make_app(_STARTED_S)(standalone_mode=False, prog_name="odradek")
    except TyperException as e:
        mistake = usage_error(e)
        if mistake is not None:
            raise mistake from e
        print(e.format_message(), file=sys.stderr)
        return USAGE
    return code if isinstance(code, int) else 0

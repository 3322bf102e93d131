"""Runs a command, and tells a user's mistake without a traceback."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from loopwarden.cli.app import app
from loopwarden.cli.standard_output import report_lost_output
from loopwarden.cli.terminal import printable

_MISTAKES: Final = frozenset(
    (
        "loopwarden.broker.errors.BrokerError",
        "loopwarden.client.errors.ClusterError",
        "loopwarden.importers.items.InputError",
        "loopwarden.serving.errors.ServingError",
        "loopwarden.worker.errors.WorkerError",
        "loopwarden_schemas.policy_file.PolicyError",
        "loopwarden.cli.mistakes.Mistake",
        "loopwarden.cli.standard_output.OutputLost",
    )
)
"""The errors whose text is meant for the user, by name: `loopwarden --help` need not import what raises them."""

_CANNOT: Final = 2
_BUG: Final = 70
"""EX_SOFTWARE of sysexits.h: never one of the codes that commands use."""


def run(arguments: Sequence[str]) -> int:
    """Run `loopwarden` with these arguments and return the exit code."""
    report_lost_output()
    given = list(arguments)
    ours = given[: given.index("--")] if "--" in given else given
    # Anywhere on the line: it is wanted when a command has just failed, and is appended to it.
    debug = "--debug" in ours
    try:
        return _code_of([*(word for word in ours if word != "--debug"), *given[len(ours) :]])
    except Exception as error:
        if debug:
            traceback.print_exc()
        if _is_mistake(error):
            _tell(printable(str(error), keep="\n"))
            return _CANNOT
        if not debug:
            _tell(f"a bug of ours: {printable(f'{type(error).__name__}: {error}')} (--debug shows where)")
        return _BUG


def _tell(text: str) -> None:
    # Where standard error takes nothing either, the exit code is all that is left to say.
    with suppress(OSError):
        print(f"loopwarden: {text}", file=sys.stderr)


def _code_of(arguments: list[str]) -> int:
    """The code that typer ends with, once all that was printed is written."""
    try:
        app(args=arguments, prog_name="loopwarden")
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    sys.stdout.flush()
    return code if isinstance(code, int) else int(code is not None)


def _is_mistake(error: Exception) -> bool:
    return any(f"{cause.__module__}.{cause.__qualname__}" in _MISTAKES for cause in type(error).__mro__)

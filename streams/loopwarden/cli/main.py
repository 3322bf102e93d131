"""The entry point: runs a command, and tells a user's mistake without a traceback."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from loopwarden.cli.app import app
from loopwarden.cli.terminal import printable

_MISTAKES: Final = frozenset(
    (
        "loopwarden.broker.errors.BrokerError",
        "loopwarden.client.errors.ClusterError",
        "loopwarden.importers.items.InputError",
        "loopwarden.sidecar.errors.SidecarError",
        "loopwarden.worker.errors.WorkerError",
        "loopwarden_schemas.policy_file.PolicyError",
        "loopwarden.cli.mistakes.Mistake",
    )
)
"""The errors whose text is meant for the user, by name: `loopwarden --help` need not import what raises them."""

_CANNOT: Final = 2
_BUG: Final = 70
"""EX_SOFTWARE of sysexits.h: never one of the codes that commands use."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `loopwarden` with these arguments (None: the process's own) and exit with the command's code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    ours = given[: given.index("--")] if "--" in given else given
    # Anywhere on the line: it is wanted when a command has just failed, and is appended to it.
    debug = "--debug" in ours
    try:
        app(args=[*(word for word in ours if word != "--debug"), *given[len(ours) :]], prog_name="loopwarden")
    except Exception as error:
        if debug:
            traceback.print_exc()
        if _is_mistake(error):
            told = printable(str(error), keep="\n")
            print(f"loopwarden: {told}", file=sys.stderr)
            sys.exit(_CANNOT)
        if not debug:
            told = printable(f"{type(error).__name__}: {error}")
            print(f"loopwarden: a bug of ours: {told} (--debug shows where)", file=sys.stderr)
        sys.exit(_BUG)
    sys.exit(0)


def _is_mistake(error: Exception) -> bool:
    return any(f"{cause.__module__}.{cause.__qualname__}" in _MISTAKES for cause in type(error).__mro__)

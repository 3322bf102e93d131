"""`loopwarden import trajectories FILE`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.options import Output, Verbose


def import_trajectories(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, one run each; .gz too; - is stdin.")],
    output: Output = None,
    verbose: Verbose = False,
) -> None:
    """Turn normalised trajectories (one finished run a line) into events.

    They carry no times: each event's order in its run stands for it. A run with a mistake in it is left out whole.

    Exit code 1 where some lines could not be read.
    """
    from loopwarden.cli.importing import import_files
    from loopwarden.importers import TRAJECTORIES

    raise typer.Exit(import_files([file], output, (TRAJECTORIES,), verbose))

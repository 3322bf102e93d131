"""`loopwarden import sessions FILE…`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.options import Output, Verbose


def import_sessions(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Session files of OpenClaw or pi; .gz too; - is stdin.")
    ],
    output: Output = None,
    verbose: Verbose = False,
) -> None:
    """Turn session files of OpenClaw and pi into events: a session is one run.

    Abandoned branches are left out. A call that OpenClaw refused itself is a tool_call.started and a
    tool_call.blocked; a compaction counts as automatic.

    Exit code 1 where some lines could not be read.
    """
    from loopwarden.cli.importing import import_files
    from loopwarden.importers import OPENCLAW

    raise typer.Exit(import_files(files, output, OPENCLAW, verbose))

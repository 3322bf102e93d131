"""`loopwarden import sessions FILE…`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.options import Follow, Output, Verbose


def import_sessions(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Session files; .gz too; a folder of them; - is stdin."),
    ],
    output: Output = None,
    follow: Follow = False,
    verbose: Verbose = False,
) -> None:
    """Turn session files of Claude Code, Codex, opencode, Gemini, OpenClaw and pi into events: a session is one run.

    A sub-agent is a run of its own. Abandoned branches of OpenClaw and pi are left out. A call that OpenClaw refused
    itself is a tool_call.started and a tool_call.blocked; a compaction counts as automatic where nothing says that a
    person asked for it. What a tool adds to its results that is new each time (ids, how long it took) is cut out.

    Exit code 1 where some lines could not be read.
    """
    if follow and len(files) > 1:
        raise typer.BadParameter("takes one file", param_hint="--follow")
    from loopwarden.cli.importing import import_files
    from loopwarden.importers import SESSIONS

    raise typer.Exit(import_files(files, output, SESSIONS, verbose, follow))

"""Options of the commands that read the log again: the same name, and the same meaning."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Runs: TypeAlias = Annotated[
    list[str] | None, typer.Option("--run", metavar="ID", help="Only this run. May be given more than once.")
]

Agent: TypeAlias = Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only the runs of this agent.")]

Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="T",
        help="Only from this time on: 2026-11-30T16:00 (local, or with a zone), 90m, 24h or 7d (ago), or milliseconds.",
    ),
]

Until: TypeAlias = Annotated[
    str | None, typer.Option("--until", metavar="T", help="Only before this time, given as for --since.")
]

FromFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from-file",
        metavar="FILE",
        help="Read a file of `loopwarden export` instead of the topics; .gz too; - is stdin.",
    ),
]

Events: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from-file",
        metavar="FILE",
        help="Read a file instead of the topics, as `judge` does: exported runs, events, trajectories, sessions.",
    ),
]

Resolved: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--resolved",
        metavar="REASON",
        help="A reason of run.finished, in full, of runs that ended well; others did not. May be given more than once. "
        "Without it the words of the reason tell.",
    ),
]

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]

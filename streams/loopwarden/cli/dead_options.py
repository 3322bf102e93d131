"""Options of the commands about dead letters: the same name, and the same meaning."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Reasons: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--reason", metavar="REASON", help="Only those with this reason. May be given more than once."),
]

Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only those of events that came in the last 30s, 10m, 2h or 1d, by the broker's clock.",
    ),
]

LETTER_HELP = "The letter, PARTITION/OFFSET/INDEX of its event in agent-events, as `loopwarden dead list` shows it."

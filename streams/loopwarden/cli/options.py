"""Options that several commands have: the same name, and the same meaning."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show every bad line and all that is left out.")
]

Follow: TypeAlias = Annotated[
    bool, typer.Option("--follow", "-f", help="Read on as the file grows, until Ctrl-C; one file only.")
]

Output: TypeAlias = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the events go; standard output without it.")
]

"""Where a server of ours listens: options that `sidecar` and `serve` have alike."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Port: TypeAlias = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where it listens; 0 takes a free one.")
]
Host: TypeAlias = Annotated[
    str, typer.Option("--host", metavar="HOST", help="The address there; beyond loopback it needs a token.")
]
Unix: TypeAlias = Annotated[
    str | None, typer.Option("--unix", metavar="PATH", help="Listen on a Unix socket instead, for this user only.")
]

"""Lines and tables that fit the terminal: whole words and whole values, on more lines where there is no room."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import RenderableType

_GAP: Final = "  "
_BREAK: Final = "\n    "

_NARROWEST: Final = 12
"""Cells of a table's first column into which a name may still be folded."""


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is; None where it is none: nothing is broken then."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def gaps(widths: Sequence[int], limit: int | None) -> Iterator[str]:
    """Return what to write before each part of a line: nothing, two spaces, or a break where the limit is passed.

    Args:
        widths: Of the parts, in cells.
        limit: Of a line; None: there is none.
    """
    column = 0
    for index, width in enumerate(widths):
        if index == 0:
            column = width
            yield ""
        elif limit is None or column + len(_GAP) + width <= limit:
            column += len(_GAP) + width
            yield _GAP
        else:
            column = len(_BREAK) - 1 + width
            yield _BREAK


def flowed(parts: Sequence[str], limit: int | None) -> str:
    """Return the parts as a line, or as several where they do not fit."""
    from rich.cells import cell_len

    if limit is None:
        return _GAP.join(parts)
    before = gaps([cell_len(part) for part in parts], limit)
    lines = "".join(gap + part for gap, part in zip(before, parts, strict=True)).split("\n")
    return "\n".join(line.rstrip() for line in lines)


def fitting_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> RenderableType:
    """Return a table that is at most so wide: in a frame, without one, or as a paragraph for each row.

    Args:
        columns: Their heads.
        rows: Their cells, plain text. Only the first of a row may be folded.
        width: In cells.
    """
    from rich.cells import cell_len
    from rich.text import Text

    def widest(texts: Sequence[str]) -> int:
        return max(map(cell_len, texts))

    cells = [widest(column) for column in zip(*rows, strict=True)] if rows else [0] * len(columns)
    framed = sum(max(cell, cell_len(head)) + 3 for cell, head in zip(cells, columns, strict=True)) + 1
    if framed <= width:
        return _table(columns, rows, framed=True)
    heads = [head.replace(" ", "\n") for head in columns]
    bare = [max(cell, widest(head.split("\n"))) for cell, head in zip(cells, heads, strict=True)]
    left = width - sum(bare[1:]) - len(_GAP) * (len(bare) - 1)
    if left >= min(bare[0], _NARROWEST):
        return _table(heads, rows, framed=False)
    named = [[f"{head}: {cell}" for head, cell in zip(columns, row, strict=True)] for row in rows]
    return Text("\n".join(flowed(row, width) for row in named))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, framed: bool) -> RenderableType:
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if framed:
        table = Table(box=HEAVY_HEAD)
    else:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        table.add_column(head, no_wrap=index > 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table

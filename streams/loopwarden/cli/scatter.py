"""A plot of points in characters: for a terminal, a file, a letter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

WIDTH: Final = 60
HEIGHT: Final = 15

_POINT, _BEST, _CHOSEN = ".", "o", "@"


def scatter(
    points: Sequence[tuple[float, float]], best: Collection[int], chosen: int | None, across: str, up: str
) -> Iterator[str]:
    """Yield the lines of a plot, the legend last.

    Args:
        points: Each as (across, up), none of them negative.
        best: The numbers of those that stand out.
        chosen: The number of the one that was chosen.
        across: What the horizontal axis is.
        up: What the vertical axis is.
    """
    widest, highest = (max(point[axis] for point in points) or 1.0 for axis in (0, 1))
    cells = [[" "] * WIDTH for _ in range(HEIGHT)]
    # In this order, so that what matters more covers what matters less.
    order = sorted(range(len(points)), key=lambda at: (at == chosen, at in best))
    for at in order:
        column = round(points[at][0] / widest * (WIDTH - 1))
        row = round(points[at][1] / highest * (HEIGHT - 1))
        cells[HEIGHT - 1 - row][column] = _CHOSEN if at == chosen else _BEST if at in best else _POINT
    yield up
    for number, row_cells in enumerate(cells):
        label = f"{highest:.1f}" if number == 0 else "0" if number == HEIGHT - 1 else ""
        yield f"{label:>6} |{''.join(row_cells)}".rstrip()
    yield f"{'':>6} +{'-' * WIDTH}"
    yield f"{'':>8}0{f'{widest:.1f}':>{WIDTH - 1}}"
    yield f"{'':>8}{across}    {_CHOSEN} chosen  {_BEST} no other beats it  {_POINT} others"

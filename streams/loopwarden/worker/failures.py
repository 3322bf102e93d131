"""What is said of an exception of the judge's: its type and place, never its text, which may hold a payload."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Final

_MOST_FRAMES: Final = 4


def type_and_place(error: BaseException) -> str:
    """Return the type of an exception, and where it was raised, innermost frame first."""
    frames = traceback.extract_tb(error.__traceback__)[: -_MOST_FRAMES - 1 : -1]
    places = [f"{'/'.join(PurePath(each.filename).parts[-2:])}:{each.lineno} in {each.name}" for each in frames]
    return f"{type(error).__qualname__} at {', from '.join(places) or 'an unknown place'}"

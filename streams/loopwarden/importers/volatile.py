"""What an agent's tools add to their results that differs each time, and says nothing of what was done.

Each format declares its own, as patterns that are cut out of a result's text, in a table at the top of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Volatile = Sequence[re.Pattern[str]]


def without(volatile: Volatile, text: str) -> str:
    """Return a result's text without what is volatile in it."""
    for pattern in volatile:
        text = pattern.sub("", text)
    return text

"""The settings of a policy as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, bool | int | None]]:
    """Return each setting's path and value."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def setting_in_words(value: bool | int | None) -> str:
    """Return a value for people."""
    if value is None:
        return "not set"
    return f"{value:,}" if type(value) is int else "on" if value else "off"

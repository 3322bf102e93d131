"""HTML built from Python: what is not markup already is escaped, so that nothing can be forgotten."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from loopwarden.report.payloads import legible


class Markup(str):
    """Text that is HTML. Only `tag`, `join` and constants of ours make it."""

    __slots__ = ()


Child: TypeAlias = str | int | None
"""Text is escaped, `Markup` stays, None is left out."""

Attribute: TypeAlias = str | float | bool | None


def escape(child: Child) -> Markup:
    """Return a child as HTML."""
    if child is None:
        return Markup()
    return child if isinstance(child, Markup) else Markup(html.escape(legible(str(child))))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element with its children.

    Attributes are written as Python allows: `class_` is class, `aria_label` aria-label. True: without a value; None and
    False: left out.
    """
    inside = "".join(map(escape, children))
    return Markup(f"<{name}{_attributes(attributes)}>{inside}</{name}>")


def void(name: str, /, **attributes: Attribute) -> Markup:
    """Return an element that never has children."""
    return Markup(f"<{name}{_attributes(attributes)}>")


def join(parts: Iterable[Child], between: str = "") -> Markup:
    """Return parts one after the other, with escaped text between them."""
    return Markup(escape(between).join(map(escape, parts)))


def _attributes(attributes: dict[str, Attribute]) -> str:
    return "".join(
        f" {name.strip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )

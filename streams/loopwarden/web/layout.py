"""What every page has around what it shows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from loopwarden.report.html import style
from loopwarden.report.markup import Child, Markup, tag, void

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Even if something slipped through the escaping, no browser would run it, or fetch it from elsewhere."""

_PAGES: Final = (
    ("fleet", "/", "Fleet"),
    ("runs", "/runs", "Runs"),
    ("verdicts", "/verdicts", "Verdicts"),
    ("policy", "/policy", "Policy"),
)

_WITHOUT_SCRIPT_S: Final = 10


@cache
def stylesheet() -> str:
    """Return the report's style sheet and what the live pages add to it."""
    return str(style()) + files("loopwarden.web").joinpath("web.css").read_text("utf-8")


@cache
def script() -> str:
    """Return what runs in the browser: it fetches the page again and puts in what changed."""
    return files("loopwarden.web").joinpath("live.js").read_text("utf-8")


def document(title: str, here: str, *content: Child) -> str:
    """Return a page.

    Args:
        title: Its title.
        here: Which of the pages it belongs to.
        content: What it shows, and shows anew while it is open.
    """
    links = [tag("a", name, href=path, aria_current="page" if page == here else None) for page, path, name in _PAGES]
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Loopwarden"),
        void("link", rel="stylesheet", href="/static/page.css"),
        tag("noscript", Markup(f'<meta http-equiv="refresh" content="{_WITHOUT_SCRIPT_S}">')),
        tag("script", src="/static/live.js", type="module"),
    )
    body = tag(
        "body",
        tag("nav", tag("span", "Loopwarden", class_="name"), *links, _state(), aria_label="Pages", class_="pages"),
        tag("div", *content, id="live"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _state() -> Markup:
    """Whether the page follows; filled in by the script, which alone knows."""
    return tag(
        "span",
        tag("button", "Pause", type="button", id="pause", hidden=True),
        tag("span", id="following", role="status"),
        class_="state",
    )


def notes(*told: str | None) -> Markup | None:
    """Return what the reader has to know, where there is something."""
    items = [tag("li", each) for each in told if each]
    return tag("ul", *items, class_="notes") if items else None

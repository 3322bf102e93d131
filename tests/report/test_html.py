"""The HTML page: whole, without script, readable by everybody."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from loopwarden.recordings import recordings
from loopwarden.report import Timeline, timeline
from loopwarden.report.html import to_html
from loopwarden_schemas.structs import ToolCallFinished

from .conftest import STRICT, Log

VOID = {"meta"}
NAMES = [name.removeprefix("openclaw-") for name in recordings()]


class Page(HTMLParser):
    """Reads a page, and fails where an element is not closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if name in (attributes.get("class") or "").split()]


def test_a_verdict_after_the_last_call_leads_to_it(log: Log) -> None:
    log.loop(10)
    log.tell("operator.override", action="abort", by="kim", why="enough")
    page = Page(to_html(log.drawn()))
    assert {each["href"] for each in page.all("a")} == {"#steps", "#calls-1"}


def test_a_run_without_calls_is_a_page_that_says_so(log: Log) -> None:
    log.tell("operator.override", action="abort")
    page = Page(to_html(log.drawn()))
    assert "The run has no calls." in page.text
    assert {each["href"] for each in page.all("a")} == {"#steps"}


def hostile_log(**options: Any) -> Log:
    nasty = "</pre><script>alert(1)</script>\"' onload=x \x00\u202e"
    # The contract takes no control characters in ids.
    name = nasty.replace("\x00", "")
    log = Log(**options)
    log.tell("run.started", cause=nasty, agent_id=name, session_id=name)
    for number in range(9):
        log.call(f"{name[:40]}{number}", tool=nasty[:60], args={nasty: nasty}, result=nasty)
    log.call("e", tool="read", error=nasty)
    log.tell("operator.override", action="release", by=nasty, why=nasty)
    log.tell("run.finished", reason=nasty)
    return log


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_a_well_formed_page_with_a_cell_for_each_call(
    recorded: Callable[[str], Timeline], name: str
) -> None:
    run = recorded(name)
    page = Page(to_html(run))
    letters = [attributes for attributes in page.all("li") if "data-s" in attributes and attributes["class"] != "mark"]
    assert [each["data-s"] for each in letters] == [run.signatures[cell.signature].letter for cell in run.cells]


def test_the_cells_of_a_loop_have_one_colour_and_refused_ones_are_marked(recorded: Callable[[str], Timeline]) -> None:
    page = Page(to_html(recorded("same-call-exec")))
    classes = [str(each["class"]).split() for each in page.all("li") if "data-s" in each]
    assert {found[0] for found in classes} == {"k1"}
    assert [found[1] for found in classes] == ["new"] + ["same"] * 7 + ["blocked"] * 32


@pytest.mark.parametrize("page", ["hostile", *NAMES])
def test_nothing_in_a_page_is_active_or_fetched(recorded: Callable[[str], Timeline], page: str) -> None:
    text = to_html(hostile_log().drawn() if page == "hostile" else recorded(page))
    found = Page(text)
    names = Counter(name for name, _ in found.elements)
    assert not names.keys() & {"script", "iframe", "object", "embed", "link", "img", "form", "base", "video", "audio"}
    for name, attributes in found.elements:
        assert not [each for each in attributes if each.startswith("on")], (name, attributes)
        assert set(attributes) & {"src", "href", "action", "data"} <= {"href"}
        assert str(attributes.get("href", "#")).startswith("#")
    assert "url(" not in text
    assert "@import" not in text


def test_what_events_carried_is_escaped_wherever_it_stands() -> None:
    text = to_html(hostile_log().drawn())
    page = Page(text)
    assert "<script" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert any("<script>alert(1)</script>" in each for each in page.text)


def test_a_browser_is_told_to_run_and_fetch_nothing(log: Log) -> None:
    policy = [each["content"] for each in Page(to_html(log.drawn())).all("meta") if "http-equiv" in each]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_a_half_surrogate_in_a_tools_name_is_a_page_all_the_same(log: Log) -> None:
    log.tell("run.started", cause="\ud800")
    to_html(log.drawn()).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_in_words_what_it_shows(recorded: Callable[[str], Timeline], name: str) -> None:
    run = recorded(name)
    page = Page(to_html(run))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    for each in page.all("a"):
        assert str(each["href"]).removeprefix("#") in identities
    for each in page.all("section"):
        assert each["aria-labelledby"] in identities
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    for number in range(1, len(run.cells) + 1):
        assert sum(text.startswith(f"Call {number}: ") for text in page.text) == 1
    assert run.headline in page.text


def test_a_page_suits_light_and_dark_phones_and_paper(log: Log) -> None:
    text = to_html(log.drawn())
    for said in ("prefers-color-scheme: dark", "@media (max-width", "@media print", "width=device-width"):
        assert said in text


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_letters_stand_out_from_every_colour_of_a_signature(log: Log) -> None:
    colours = re.findall(r"\.k[1-7] \{ --fill: (#\w{6}); --on: (#\w{3,6}); \}", to_html(log.drawn()))
    assert len(colours) == 7
    for fill, ink in colours:
        light, dark = sorted((luminance(fill), luminance(ink.replace("#fff", "#ffffff"))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, fill


def test_a_payload_is_folded_away_and_what_is_cut_is_said() -> None:
    log = Log(shown_characters=10)
    log.call("a", args="x" * 25, result="short")
    page = Page(to_html(log.drawn()))
    assert len(page.all("details")) == 2
    assert all("open" not in each for each in page.all("details"))
    assert "xxxxxxxxxx" in page.text
    assert "15 further characters left out" in page.text


def test_a_page_of_hashes_shows_no_payloads(log: Log) -> None:
    log.tell("tool_call.finished", call_id="b", tool="read", args_hash="ab" * 16, result_hash="cd" * 16)
    page = Page(to_html(log.drawn()))
    assert page.all("details") == []
    assert "nothing to show" in page.text


def long_run() -> Timeline:
    """10,000 calls: of the first 3,000 each is another one with a long result, the rest is a loop of two calls."""

    def finished(number: int) -> ToolCallFinished:
        args, result = (number, "x" * 2_500 + str(number)) if number < 3_000 else (-(number % 2) - 1, "same")
        return ToolCallFinished(
            event_id=f"e{number}", run_id="r", ts=number, append_time=number, tool="read", args=args, result=result
        )

    return timeline("r", map(finished, range(10_000)), policy=STRICT)


def test_ten_thousand_calls_stay_a_page_that_a_phone_opens() -> None:
    text = to_html(long_run())
    page = Page(text)
    assert len([each for each in page.all("li") if "data-s" in each]) == 10_000
    assert len(text) < 4_000_000
    assert len(page.all("svg")) == 1
    assert page.all("body") == [{"class": "too-long-for-paper"}]
    assert len(page.all("tr")) < 2_000
    assert any("payloads left out: a page shows 500,000 characters of them in all" in each for each in page.text)
    assert any("The first 500 of 3,002 signatures" in each for each in page.text)

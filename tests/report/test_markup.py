"""Escaping: what comes from events stays text."""

from __future__ import annotations

import html

import hypothesis.strategies as st
import pytest
from hypothesis import given

from loopwarden.report.markup import Markup, escape, join, tag, void
from loopwarden.report.payloads import legible, one_line, payload

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "</style>",
    "&lt;",
    "\x00\x1b[2J",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_never_markup(text: str) -> None:
    assert html.unescape(tag("p", text)) == f"<p>{legible(text)}</p>"
    assert "<" not in escape(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_an_attribute_ends_only_where_we_end_it(text: str) -> None:
    written = tag("p", title=text)
    assert written.count('"') == 2
    assert written.count("<") == 2


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", Markup("<b>x</b>"), "<") == "<p><b>x</b>&lt;</p>"
    assert join(["<", tag("i")], ", ") == "&lt;, <i></i>"


def test_attributes_are_named_as_html_names_them() -> None:
    assert tag("p", class_="c", aria_label="l", hidden=True, title=None, lang=False) == (
        '<p class="c" aria-label="l" hidden></p>'
    )
    assert void("meta", charset="utf-8") == '<meta charset="utf-8">'


@given(st.text(st.characters(exclude_categories=[])))
def test_legible_text_is_utf_8_and_has_nothing_that_acts(text: str) -> None:
    shown = legible(text)
    shown.encode()
    assert all(one.isprintable() or one in "\n\t" for one in shown)


def test_half_a_surrogate_pair_and_marks_of_direction_are_spelled_out() -> None:
    assert legible("a\ud800b\u202ec") == "a\\ud800b\\u202ec"


def test_a_payload_is_cut_and_says_how_much_is_left_out() -> None:
    found = payload("x" * 10, 4)
    assert found is not None
    assert (found.text, found.left_out) == ("xxxx", 6)


def test_a_tools_answer_that_is_only_text_is_shown_as_text() -> None:
    found = payload({"content": [{"type": "text", "text": "a\nb"}], "isError": False}, 100)
    assert found is not None
    assert found.text == "a\nb"


def test_other_values_are_shown_as_json() -> None:
    found = payload({"ä": [1, None]}, 100)
    assert found is not None
    assert found.text == '{\n  "ä": [\n    1,\n    null\n  ]\n}'


def test_one_line_is_one_line() -> None:
    assert one_line("a\n  b\tc", 4) == "a b…"

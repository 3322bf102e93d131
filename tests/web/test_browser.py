"""The live page as a reader sees it, in a real headless Chromium."""

from __future__ import annotations

import json
from typing import Any

from .browser import Browser
from .conftest import NOBODY, Served, publish_loop


def test_a_loop_that_is_published_while_the_pages_are_open_is_shown(
    page: Served, judging: Any, browser: Browser
) -> None:
    fleet = browser.open(page.place)
    fleet.wait_for("document.querySelector('#following').innerText === 'live'")
    assert "No run of the last hour repeats itself" in fleet.text()
    publish_loop(judging, "build-7", 3)
    fleet.wait_for("document.querySelector('tbody th')?.innerText.includes('build-7')")
    fleet.wait_for("document.querySelector('.badge.warn')?.innerText === '1 warning'")

    # Followed by its link; then it grows, and what is pointed at or opened stays.
    fleet.value("document.querySelector('tbody th a').click()")
    fleet.wait_for("document.querySelectorAll('.cells li:not(.mark)').length === 3")
    fleet.wait_for("document.querySelector('#following').innerText === 'live'")
    fleet.value("document.querySelector('details').open = true; window.first = document.querySelector('.cells li')")
    publish_loop(judging, "build-7", 3, first=3)
    fleet.wait_for("document.querySelectorAll('.cells li:not(.mark)').length === 6")
    fleet.wait_for("document.querySelectorAll('.cells li.block').length > 0")
    assert fleet.value("document.querySelector('details').open && window.first === document.querySelector('.cells li')")
    assert "calls blocked" in fleet.text("header")
    assert fleet.problems() == []

    # A reader who has paused is left alone.
    fleet.value("document.querySelector('#pause').click()")
    publish_loop(judging, "build-7", 1, first=6)
    page.until("/v1/runs/build-7", lambda run: len(run["cells"]) == 7)
    fleet.wait_for("document.querySelector('#following').innerText === 'paused'")
    assert fleet.value("document.querySelectorAll('.cells li:not(.mark)').length") == 6
    fleet.value("document.querySelector('#pause').click()")
    fleet.wait_for("document.querySelectorAll('.cells li:not(.mark)').length === 7")

    # Where scripts are off, the same is there as it was when the page was asked for; and a filter is a link.
    static = browser.open(f"{page.place}/verdicts?action=warn", script=False, width=390, dark=True)
    assert static.value("document.querySelectorAll('tbody tr').length") == 1
    assert static.value("document.querySelector('#pause').checkVisibility()") is False
    assert "generic_repeat" in static.text("tbody")
    assert static.value("document.documentElement.scrollWidth <= 390"), "a phone would have to scroll sideways"


def test_no_page_is_wider_than_a_phone_and_each_says_when_nobody_answers(start: Any, browser: Browser) -> None:
    served = start("--broker", NOBODY)
    for path in ("/", "/runs", "/verdicts"):
        phone = browser.open(f"{served.place}{path}", width=390)
        phone.wait_for("document.querySelector('#following').innerText === 'live'")
        assert phone.value("document.documentElement.scrollWidth <= 390"), path
        assert phone.problems() == [], path
    served.process.kill()
    phone.wait_for("document.querySelector('#following').innerText.startsWith('no answer')")


def test_what_changes_is_put_in_and_what_stays_is_not_touched(start: Any, browser: Browser) -> None:
    served = start("--broker", NOBODY)
    page = browser.open(served.place)
    page.value("document.querySelector('#pause').click()")
    module = "(await import('/static/live.js')).become"
    before = "<ul><li id=a>1</li><li id=b>2</li><li id=c>3</li></ul><details open><summary>s</summary>x</details>"
    after = "<ul><li id=n>0</li><li id=a>1</li><li id=c>4</li></ul><details><summary>s</summary>y</details>"
    found = page.value(
        f"""(async () => {{
          const become = {module};
          const [old, fresh] = [{json.dumps(before)}, {json.dumps(after)}].map((html) => {{
            const made = document.createElement("div");
            made.innerHTML = html;
            return made;
          }});
          const kept = old.querySelector("#a");
          become(old, fresh);
          return [old.innerHTML, kept === old.querySelector("#a")];
        }})()"""
    )
    assert found == [
        '<ul><li id="n">0</li><li id="a">1</li><li id="c">4</li></ul><details open=""><summary>s</summary>y</details>',
        True,
    ]

"""What the pages say, and that nothing that an agent wrote acts in them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from loopwarden.client import ArchivedPolicy, InForce
from loopwarden.report import timeline
from loopwarden.report.html import body
from loopwarden.web.asking import RunsAsked, VerdictsAsked
from loopwarden.web.fleet import now_ms
from loopwarden.web.fleet_page import Source, fleet_page
from loopwarden.web.policies import Policies
from loopwarden.web.policy_page import policy_page
from loopwarden.web.run_page import no_run_page, problem_page, run_page
from loopwarden.web.runs_page import runs_page
from loopwarden.web.summary import Summaries
from loopwarden.web.verdicts_page import verdicts_page
from loopwarden_schemas.policy import PolicyDocument

from .conftest import STRICT, Told

SOURCE = Source("agent-events and loop-verdicts at kafka:9092", "from 1 h before this page was started", True, None)
HOSTILE = '"><script src=//evil.example></script><img onerror=alert(1)>'
OURS = [{"src": "/static/live.js", "type": "module"}]


class Elements(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def pages(told: Told, text: str) -> dict[str, str]:
    """Every page with a text of somebody else's in every place that it can get to."""
    archive = [ArchivedPolicy(0, PolicyDocument.from_value({text: text, **STRICT}), text, text, 1_000, {})]
    asked, wanted = RunsAsked(text), VerdictsAsked(text, reason=text)
    return {
        "fleet": fleet_page(Summaries(told.fleet).summary(), Source(text, text, False, text)),
        "runs": runs_page(asked, RunsAsked().of(told.fleet), SOURCE),
        "verdicts": verdicts_page(wanted, VerdictsAsked().of(told.fleet), SOURCE),
        "policy": policy_page(Policies(archive, [InForce(0, 0, 0, 1_000)])),
        "run": run_page(text, body(timeline(text, [])), text),
        "no run": no_run_page(text),
        "problem": problem_page(text),
    }


def test_nothing_that_an_agent_wrote_becomes_an_element(told: Told) -> None:
    now = now_ms()
    told.event("run.started", HOSTILE, at=now, agent_id=HOSTILE[:60])
    told.call(HOSTILE, tool=HOSTILE[:60])
    told.verdict("block", HOSTILE, at=now, reason=HOSTILE, message=HOSTILE, tool=HOSTILE, agent_id=HOSTILE)
    for name, page in pages(told, HOSTILE).items():
        elements = Elements(page).found
        assert [attributes for tag, attributes in elements if tag == "script"] == OURS, name
        assert not [tag for tag, _ in elements if tag == "img"], name
        assert not [each for _, attributes in elements for each in attributes if each.startswith("on")], name
        assert "evil.example" in page, name


@pytest.mark.parametrize("run_id", ["a/b", "a?b", "a#b", "../x", "ü %2F"])
def test_every_run_has_an_address(told: Told, run_id: str) -> None:
    from urllib.parse import unquote

    told.event("run.started", run_id)
    page = runs_page(RunsAsked(), RunsAsked().of(told.fleet), SOURCE)
    paths = [attributes["href"] or "" for tag, attributes in Elements(page).found if tag == "a"]
    addresses = [path for path in paths if path.startswith("/runs/")]
    assert [unquote(path.removeprefix("/runs/")) for path in addresses] == [run_id]
    assert "/" not in addresses[0].removeprefix("/runs/") and "?" not in addresses[0] and "#" not in addresses[0]


def test_the_fleet_says_when_it_stands_still_or_is_not_all_read(told: Told) -> None:
    summary = Summaries(told.fleet).summary()
    assert "stands still: no broker there" in fleet_page(summary, Source("t", "l", False, "no broker there"))
    assert "Still reading" in fleet_page(summary, Source("t", "l", False, None))
    assert "Still reading" not in fleet_page(summary, SOURCE)


def test_without_script_a_page_is_shown_anew_now_and_then() -> None:
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in no_run_page("r")


def test_the_policy_says_what_each_one_changed_and_what_agents_have_of_their_own() -> None:
    second = {
        **STRICT,
        "agents": {"list": [{"id": "nightly", "tools": {"loopDetection": {"warningThreshold": 3}}}]},
        "tools": {"loopDetection": {**STRICT["tools"]["loopDetection"], "criticalThreshold": 8}},
    }
    archive = [
        ArchivedPolicy(0, PolicyDocument.from_value(STRICT), "ana", "begin", 1_000, {}),
        ArchivedPolicy(3, PolicyDocument.from_value(second), "ben", "incident 12", 2_000, {}),
    ]
    page = policy_page(Policies(archive, [InForce(0, 3, 7, 2_500), InForce(1, 3, 9, 2_500)]))
    assert "judged by policy 3, applied by ben: incident 12" in page
    assert "criticalThreshold 4 → 8" in page
    assert "warningThreshold 2 → 3" in page
    assert "enabled not set → on" in page


def test_the_policy_says_that_it_is_not_the_same_everywhere() -> None:
    archive = [ArchivedPolicy(0, PolicyDocument.from_value(STRICT), "ana", "begin", 1_000, {})]
    assert "Not the same policy" in policy_page(Policies(archive, [InForce(0, 0, 7, 2_500), InForce(1)]))
    assert "judged by the defaults" in policy_page(Policies([], [InForce(0)]))

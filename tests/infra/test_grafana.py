"""The dashboard: every query is PromQL over metrics that a worker has, and every panel can be read."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from .promql import metric_names

# What Grafana puts in place of its variables.
VARIABLES = {"$job": "loopwarden-worker", "$__rate_interval": "1m"}


@pytest.fixture(scope="module")
def dashboard(infra: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((infra / "grafana/loopwarden.json").read_text())
    return found


@pytest.fixture(scope="module")
def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def as_sent(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_every_query_asks_for_metrics_that_a_worker_has(panels: list[dict[str, Any]], exported: set[str]) -> None:
    asked: set[str] = set()
    for panel in panels:
        assert panel["targets"]
        for target in panel["targets"]:
            names = metric_names(as_sent(target["expr"]))
            assert names <= exported, panel["title"]
            asked |= names
    # A metric that nobody looks at is noise, or is missing here.
    unseen = {name for name in exported if name.startswith("loopwarden_") and not name.endswith("_created")} - asked
    assert unseen == {"loopwarden_judge_seconds_count", "loopwarden_checkpoint_seconds_sum"} | {
        "loopwarden_checkpoint_seconds_count",
        "loopwarden_rules_info",
    }


def test_every_variable_of_a_query_is_one_of_the_dashboard_or_of_grafana(dashboard: dict[str, Any]) -> None:
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard)))
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert used == declared | {"__rate_interval"}
    for variable in dashboard["templating"]["list"]:
        assert variable["type"] == "datasource" or variable["datasource"]["uid"] == "${datasource}"


def test_every_panel_has_words_a_unit_and_the_chosen_data_source(panels: list[dict[str, Any]]) -> None:
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_no_panel_lies_on_another(dashboard: dict[str, Any]) -> None:
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for one, other in combinations([panel["gridPos"] for panel in dashboard["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard["panels"])

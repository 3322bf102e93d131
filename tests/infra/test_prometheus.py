"""The alert rules: PromQL over metrics that exist, each with its way out in the runbook, played by promtool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from loopwarden_schemas.structs import Reason

from .promql import metric_names

PROMETHEUS_OWN = {"up"}


@pytest.fixture(scope="module")
def alerts(infra: Path) -> list[dict[str, Any]]:
    groups = yaml.safe_load((infra / "prometheus/loopwarden.rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def runbook(infra: Path) -> str:
    return (infra / "prometheus/RUNBOOK.md").read_text()


def promtool_says(promtool: str, *arguments: str, folder: Path, text: str | None = None) -> str:
    command = [promtool, *arguments]
    ended = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_every_alert_asks_for_metrics_that_a_worker_has(alerts: list[dict[str, Any]], exported: set[str]) -> None:
    for alert in alerts:
        asked = metric_names(alert["expr"])
        assert asked
        assert asked <= exported | PROMETHEUS_OWN, alert["alert"]


def test_every_alert_has_a_severity_words_and_its_section_of_the_runbook(
    alerts: list[dict[str, Any]], runbook: str, infra: Path
) -> None:
    sections = {heading.lower() for heading in re.findall(r"^## (\w+)$", runbook, re.MULTILINE)}
    for alert in alerts:
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "description", "runbook"} == alert["annotations"].keys()
        file, _, section = alert["annotations"]["runbook"].partition("#")
        assert (infra.parent / file).is_file()
        assert section == alert["alert"].lower()
        assert section in sections


def test_the_runbook_has_a_section_for_nothing_else(alerts: list[dict[str, Any]], runbook: str) -> None:
    sections = re.findall(r"^## (Loopwarden\w+)$", runbook, re.MULTILINE)
    assert sections == [alert["alert"] for alert in alerts]


def test_the_runbook_names_only_metrics_and_reasons_that_exist(runbook: str, exported: set[str]) -> None:
    assert set(re.findall(r"\bloopwarden_[a-z_]+", runbook)) <= exported
    section = runbook.partition("## LoopwardenDeadLetters")[2].partition("\n## ")[0]
    lines = re.findall(r"^- (`.*?):", section, re.MULTILINE)
    assert {name for line in lines for name in re.findall(r"`(\w+)`", line)} == set(get_args(Reason)) - {"judge_failed"}


def test_promtool_takes_the_rules_and_the_configuration(promtool: str, infra: Path) -> None:
    folder = infra / "prometheus"
    assert "SUCCESS" in promtool_says(promtool, "check", "rules", "loopwarden.rules.yaml", folder=folder)
    assert "SUCCESS" in promtool_says(promtool, "check", "config", "prometheus.yaml", folder=folder)


def test_each_alert_fires_when_it_should_and_only_then(
    promtool: str, infra: Path, alerts: list[dict[str, Any]]
) -> None:
    folder = infra / "prometheus"
    played = yaml.safe_load((folder / "loopwarden.rules.test.yaml").read_text())["tests"]
    tests = [test for each in played for test in each["alert_rule_test"]]
    for fires in (True, False):
        tested = {test["alertname"] for test in tests if ("exp_alerts" in test) == fires}
        assert tested == {alert["alert"] for alert in alerts}
    assert "SUCCESS" in promtool_says(promtool, "test", "rules", "loopwarden.rules.test.yaml", folder=folder)


def test_the_worker_s_metrics_keep_prometheus_rules_of_naming(promtool: str, infra: Path, exposition: str) -> None:
    own = [line for line in exposition.splitlines() if "_created" not in line]
    assert promtool_says(promtool, "check", "metrics", folder=infra, text="\n".join(own) + "\n") == ""


def test_the_configuration_scrapes_the_job_that_the_alerts_ask_for(infra: Path, alerts: list[dict[str, Any]]) -> None:
    configuration = yaml.safe_load((infra / "prometheus/prometheus.yaml").read_text())
    asked = {job for alert in alerts for job in re.findall(r'job="([^"]+)"', alert["expr"])}
    assert asked == {job["job_name"] for job in configuration["scrape_configs"]}
    assert configuration["rule_files"] == ["loopwarden.rules.yaml"]


def test_the_configuration_scrapes_each_worker_of_the_compose_file_for_itself(infra: Path) -> None:
    [job] = yaml.safe_load((infra / "prometheus/prometheus.yaml").read_text())["scrape_configs"]
    worker = yaml.safe_load((infra / "compose.yaml").read_text())["services"]["worker"]
    # One target for a name with several addresses would be any of them.
    assert "static_configs" not in job
    [found] = job["dns_sd_configs"]
    assert (found["names"], found["type"]) == (["worker"], "A")
    assert found["port"] == worker["environment"]["LOOPWARDEN_METRICS_PORT"]

"""`loopwarden topics plan|apply|check|acls`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden_schemas.topics import Topics


@pytest.fixture
def cluster_options(broker: LocalBroker, topics: Topics) -> tuple[str, ...]:
    return ("--broker", broker.bootstrap_servers, "--prefix", topics.prefix)


def test_a_plan_is_applied_and_then_there_is_nothing_to_do(run: Callable[..., Any], broker: LocalBroker) -> None:
    options = ("--broker", broker.bootstrap_servers, "--prefix", f"t{secrets.token_hex(4)}-")
    planned = run("topics", "plan", *options, "--partitions", "3")
    assert (planned.code, planned.out.count("create")) == (1, 6)
    assert "6 changes to make" in planned.out
    assert run("topics", "check", *options).code == 1
    applied = run("topics", "apply", *options, "--partitions", "3")
    assert (applied.code, applied.out.count("created, with 3 partitions")) == (0, 5)
    for command in ("plan", "apply", "check"):
        ran = run("topics", command, *options, "--partitions", "3")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("ok: the 6 topics at ")


def test_what_is_refused_is_told_with_why_and_the_way_out_and_ends_with_1(
    run: Callable[..., Any], topics: Topics, cluster_options: tuple[str, ...]
) -> None:
    planned = run("topics", "plan", *cluster_options, "--partitions", "9")
    assert planned.code == 1
    assert "refused" in planned.out
    assert "runs are hashed to partitions, and would move away from their states" in planned.out
    applied = run("topics", "apply", *cluster_options, "--partitions", "9")
    assert (applied.code, applied.out) == (1, "")
    assert f"refused: {topics.events.name}: partitions must be 9, got 2" in applied.err
    assert "under another prefix" in applied.err
    assert "nothing was changed" in applied.err
    assert run("topics", "check", *cluster_options).code == 0


def test_a_plan_as_json_holds_every_difference(
    run: Callable[..., Any], topics: Topics, cluster_options: tuple[str, ...]
) -> None:
    assert json.loads(run("topics", "plan", *cluster_options, "--json").out)["differences"] == []
    ran = run("topics", "plan", *cluster_options, "--partitions", "9", "--json")
    plan = json.loads(ran.out)
    assert (ran.code, plan["to_do"], plan["refused"]) == (1, 0, 1)
    [difference] = plan["differences"]
    assert (difference["topic"], difference["found"], difference["wanted"]) == (topics.events.name, "2", "9")
    assert difference["change"] == "none"


def test_a_check_says_on_what_no_worker_starts(
    run: Callable[..., Any], broker: LocalBroker, topics: Topics, cluster_options: tuple[str, ...]
) -> None:
    from loopwarden.client import admin_client

    with admin_client(broker.bootstrap_servers) as client:
        client.delete_topics([topics.changelog.name])
        while topics.changelog.name in client.list_topics():
            pass
    ran = run("topics", "check", *cluster_options)
    assert ran.code == 1
    assert f"{topics.changelog.name}: must exist, but does not (no worker starts on it)" in ran.out


def test_more_in_sync_replicas_than_replicas_are_no_plan(run: Callable[..., Any]) -> None:
    ran = run("topics", "plan", "--replication-factor", "2", "--min-insync-replicas", "3")
    assert (ran.code, ran.err.startswith("loopwarden: --min-insync-replicas: must be at most")) == (2, True)


def test_acls_are_printed_for_whom_they_are_asked(run: Callable[..., Any]) -> None:
    ran = run("topics", "acls", "--gateway", "gw", "--gateway", "gw2", "--runner", "User:CN=r", "--prefix", "team-")
    assert ran.code == 0
    kafka_acls = "kafka-acls.sh --bootstrap-server localhost:9092 --add"
    of_gateway = "--allow-principal User:gw --allow-principal User:gw2"
    of_runner = f"{kafka_acls} --allow-principal User:CN=r --operation Read"
    assert ran.out.splitlines() == [
        "# gateway: publishes what its runs do",
        f"{kafka_acls} {of_gateway} --operation Write --topic team-agent-events",
        "# runner: reads verdicts, and how far they are judged",
        f"{of_runner} --topic team-loop-verdicts",
        f"{of_runner} --topic team-loop-progress",
    ]
    nobody = run("topics", "acls")
    assert (nobody.code, "for whom" in nobody.err) == (2, True)

"""Each role with the rights that `loopwarden topics acls` prints: all that it needs, and no more."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopwarden.client import Connection

HANG_S = 60
POLICY = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 3}
CALL = ("read", {"path": "/x"})


@pytest.mark.parametrize(("protocol", "mechanism"), [("SASL_SSL", "SCRAM-SHA-512"), ("SASL_SSL", "PLAIN"), ("SSL", "")])
def test_a_loop_is_blocked_end_to_end_with_three_principals_that_may_do_their_own_part_only(
    secured: Any, protocol: Any, mechanism: str
) -> None:
    from loopwarden.client import NotAuthorized
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

    for role in ("gateway", "runner", "worker"):
        secured.grant(role, role)
    connection = {role: secured.connection(role, protocol, mechanism) for role in ("gateway", "runner", "worker")}
    secured.start_worker("worker", protocol, mechanism)
    secured.wait_for_log("ready, judging partitions")
    with (
        Gateway(connection["gateway"], strict=True) as gateway,
        RunGuard(connection["runner"], gateway=gateway, certain=HANG_S) as guard,
        gateway.run(policy=POLICY) as run,
        guard.run(run) as guarded,
    ):
        actions = []
        for number in range(5):
            answer = guarded.before_call(*CALL)
            actions.append(answer.action)
            if answer.action == "block":
                break
            gateway.started(run.run_id, *CALL, call_id=f"c{number}")
            gateway.finished(run.run_id, *CALL, call_id=f"c{number}", result="the same")
        assert actions == ["allow", "allow", "allow", "block"]
        assert gateway.flush(HANG_S)
    assert secured.stop_worker() == 0
    assert "Traceback" not in secured.log
    topics = secured.topics
    for role, topic in (("gateway", topics.verdicts), ("gateway", topics.events), ("runner", topics.policies)):
        with pytest.raises(NotAuthorized, match=f"right Read on topic {topic.name}"):
            read_some(connection[role], topic.name)
    for role in ("runner", "worker"):
        with pytest.raises(NotAuthorized, match=f"right Write on topic {topics.events.name}"):
            write_nothing(connection[role])


def read_some(connection: Connection, topic: str) -> None:
    from loopwarden.client import following

    with following(connection, topic) as follower:
        follower.start("beginning")
        until(follower.poll)


def write_nothing(connection: Connection) -> None:
    from loopwarden.client import event_producer

    with event_producer(connection):
        pass


def test_a_worker_without_any_one_of_its_rights_says_which(secured: Any) -> None:
    from loopwarden.client.acls import grants
    from loopwarden.worker.errors import NotAdmitted
    from loopwarden.worker.preflight import wait_for_topics

    needed = [
        (right, grant.kind, grant.name) for grant in grants("worker", secured.topics) for right in grant.operations
    ]
    for number, (right, kind, name) in enumerate(needed):
        worker = f"worker-{number}-{secured.topics.prefix}"
        secured.grant("worker", worker, but=(right, name))
        connection = secured.connection(worker)
        with pytest.raises(NotAdmitted) as refused:
            asyncio.run(wait_for_topics(connection))
        # Who may not even describe a topic is not told what else is missing there.
        named = rf"User:{worker} must have the right (\w+ and )?{right}( and \w+)? on {kind} {name}: it has not"
        assert re.search(named, str(refused.value)), refused.value


def test_a_worker_that_loses_a_right_stops_and_says_which(secured: Any) -> None:
    secured.grant("worker", "worker")
    secured.start_worker("worker", "SASL_SSL", "SCRAM-SHA-512")
    secured.wait_until_judging()
    topic = secured.topics.events.name
    secured.revoke("worker", "Read", topic)
    assert secured.exit_code() == 1
    assert "the worker stops: " in secured.log
    assert f"User:worker must have the right Read on topic {topic}: it has not" in secured.log
    assert f"--operation Read --topic {topic}" in secured.log
    assert "Traceback" not in secured.log


def test_a_gateway_that_may_not_write_says_so_and_keeps_its_events(
    secured: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from loopwarden.gateway import Gateway

    with caplog.at_level(logging.WARNING, "loopwarden.gateway"), Gateway(secured.connection("stranger")) as gateway:
        gateway.run_started("r")
        told = until(lambda: [each for each in caplog.messages if "must have the right" in each])
        assert f"User:stranger must have the right Write on topic {secured.topics.events.name}" in told[0]
        assert gateway.stats.buffered == 1
        secured.grant("gateway", "stranger")
        assert gateway.flush(HANG_S)


@pytest.mark.parametrize("lacking", ["verdicts", "progress"])
def test_a_runner_that_may_not_read_says_so(secured: Any, caplog: pytest.LogCaptureFixture, lacking: str) -> None:
    from loopwarden.runner import RunGuard

    topic = getattr(secured.topics, lacking).name
    secured.grant("runner", f"runner-without-{lacking}", but=("Read", topic))
    connection = secured.connection(f"runner-without-{lacking}")
    with caplog.at_level(logging.WARNING, "loopwarden.runner"), RunGuard(connection) as guard, guard.run("r"):
        told = until(lambda: [each for each in caplog.messages if "must have the right" in each])
    assert f"User:runner-without-{lacking} must have the right Read on topic {topic}" in told[0]


def test_the_selftest_an_operator_an_analyst_and_an_admin_have_what_they_need(secured: Any) -> None:
    for role in ("selftest", "operator", "analyst", "admin"):
        secured.grant(role, role)

    def ran(name: str, *arguments: str) -> Any:
        file = secured.properties(name)
        return secured.run(*arguments, "--client-properties", file, "--prefix", secured.topics.prefix)

    no_worker = ran("selftest", "selftest", "--timeout", "0.2")
    assert (no_worker.code, "no verdict on the loop" in no_worker.err) == (1, True), no_worker
    policy = secured.folder / "policy.json5"
    policy.write_text("{ tools: { loopDetection: { enabled: true } } }")
    for name, arguments in (
        ("operator", ("policy", "apply", str(policy), "--why", "test")),
        ("operator", ("override", "abort", "--run", "r", "--by", "ada", "--why", "test")),
        ("analyst", ("policy", "show")),
        ("analyst", ("history", "--run", "r")),
        ("analyst", ("watch", "--no-follow")),
        ("analyst", ("export", "--run", "r")),
        ("analyst", ("report", "--run", "r", "--format", "md")),
        ("admin", ("topics", "check")),
        ("admin", ("topics", "apply")),
    ):
        done = ran(name, *arguments)
        assert done.code == 0, (name, arguments, done)
    refused = ran("analyst", "policy", "apply", str(policy), "--why", "again, with another reason")
    assert refused.code == 2


def until(condition: Any) -> Any:
    deadline = time.monotonic() + HANG_S
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found

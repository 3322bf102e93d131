"""What each role needs, as commands for `kafka-acls.sh`."""

from __future__ import annotations

import shlex

import pytest

from loopwarden.client.acls import ROLES, commands, grants
from loopwarden_schemas.topics import declared_topics

TOPICS = declared_topics("team-")


def rights(role: str) -> dict[str, set[str]]:
    return {grant.name: set(grant.operations) for grant in grants(role, TOPICS)}  # type: ignore[arg-type]


def test_a_gateway_may_only_write_events() -> None:
    assert rights("gateway") == {"team-agent-events": {"Write"}}


def test_a_runner_may_only_read_verdicts_and_progress() -> None:
    assert rights("runner") == {"team-loop-verdicts": {"Read"}, "team-loop-progress": {"Read"}}


def test_only_a_worker_writes_verdicts_progress_dead_letters_and_states() -> None:
    own = ("team-loop-verdicts", "team-loop-progress", "team-agent-events-dead", "team-loopwarden-runs-changelog")
    for role in ROLES:
        for topic in own:
            assert ("Write" in rights(role).get(topic, set())) == (role == "worker")


def test_only_operators_write_policies() -> None:
    assert [role for role in ROLES if "Write" in rights(role).get("team-loop-policies", set())] == ["operator"]


def test_nobody_gets_a_right_to_everything_or_to_the_cluster() -> None:
    for role in ROLES:
        assert {grant.kind for grant in grants(role, TOPICS)} <= {"topic", "group"}
        assert not any("All" in operations for operations in rights(role).values())


def test_the_worker_joins_its_own_group() -> None:
    assert [grant for grant in grants("worker", TOPICS) if grant.kind == "group"] == [
        ("group", "team-loopwarden", ("Read",))
    ]


@pytest.mark.parametrize("name", ["gate way", "User:CN=gateway,O=A B"])
def test_commands_are_words_of_the_shell_with_the_principal_as_kafka_writes_it(name: str) -> None:
    [command] = commands("gateway", [name], TOPICS, "kafka:9092", "admin.properties")
    wanted = name if name.startswith("User:") else f"User:{name}"
    assert shlex.split(command) == [
        "kafka-acls.sh",
        *("--bootstrap-server", "kafka:9092", "--command-config", "admin.properties", "--add"),
        *("--allow-principal", wanted, "--operation", "Write", "--topic", "team-agent-events"),
    ]

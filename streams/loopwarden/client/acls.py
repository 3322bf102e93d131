"""What each role needs of the cluster, and no more: for `kafka-acls.sh`. (Kafka 3.0 and newer.)

Kafka's own rules that these come of: `Read`, `Write` and `Alter` bring `Describe` with them; an idempotent producer
needs nothing beside `Write` on some topic (KIP-679; before 2.8 it needed IdempotentWrite on the cluster); reading
without a consumer group needs no right to one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from loopwarden_schemas.topics import Topics

Role: TypeAlias = Literal["gateway", "runner", "worker", "operator", "analyst", "selftest", "admin"]

ROLES: Final[Mapping[Role, str]] = {
    "gateway": "publishes what its runs do",
    "runner": "reads verdicts, and how far they are judged",
    "worker": "judges; its consumer group shares the partitions",
    "operator": "publishes, decides about runs, applies policies, replays dead letters",
    "analyst": "reads everything, and changes nothing",
    "selftest": "sends a loop, and waits for its verdicts",
    "admin": "loopwarden topics plan, apply and check",
}


class Grant(NamedTuple):
    """Operations that a role is allowed on one resource.

    Attributes:
        kind: `topic` or `group`.
        name: Of the topic or group.
        operations: As `kafka-acls.sh` names them.
    """

    kind: Literal["topic", "group"]
    name: str
    operations: tuple[str, ...]


def grants(role: Role, topics: Topics) -> list[Grant]:
    """Return what a role needs for the topics of one installation."""

    def on(topic: str, *operations: str) -> Grant:
        return Grant("topic", topic, operations)

    events, verdicts, progress = topics.events.name, topics.verdicts.name, topics.progress.name
    policies, dead, changelog = topics.policies.name, topics.dead.name, topics.changelog.name
    reading = [on(name, "Read") for name in (events, verdicts, progress, policies, dead)]
    if role == "gateway":
        return [on(events, "Write")]
    if role == "runner":
        return [on(verdicts, "Read"), on(progress, "Read")]
    if role == "worker":
        # It looks at the settings of all of them before it starts.
        return [
            on(events, "Read", "DescribeConfigs"),
            on(policies, "Read", "DescribeConfigs"),
            *(on(name, "Write", "DescribeConfigs") for name in (verdicts, progress, dead)),
            on(changelog, "Read", "Write", "DescribeConfigs"),
            Grant("group", topics.app_id, ("Read",)),
        ]
    if role == "operator":
        return [*reading, on(events, "Write"), on(policies, "Write")]
    if role == "analyst":
        # Where the log does not tell any more when a policy was applied, the worker's changelog does.
        return [*reading, on(changelog, "Read")]
    if role == "selftest":
        return [on(events, "Write"), on(verdicts, "Read"), on(progress, "Read")]
    # Replicas are added by a right to the cluster, which more than our topics could be changed with: not given here.
    operations = ("Create", "Describe", "DescribeConfigs", "Alter", "AlterConfigs")
    return [on(topic.name, *operations) for topic in topics.all()]


def principal(name: str) -> str:
    """Return a principal as Kafka writes it: `User:NAME`, unless it has a type already."""
    return name if name.startswith(("User:", "Group:")) else f"User:{name}"


def commands(
    role: Role, principals: Iterable[str], topics: Topics, bootstrap_servers: str, command_config: str | None
) -> list[str]:
    """Return the `kafka-acls.sh` commands, one for each resource.

    Args:
        role: What the principals are.
        principals: Such as `User:gateway`.
        topics: Of the installation.
        bootstrap_servers: Of the cluster.
        command_config: The administrator's properties file, if one is needed.
    """
    allowed = [word for each in principals for word in ("--allow-principal", principal(each))]
    config = ["--command-config", command_config] if command_config else []
    return [
        shlex.join(
            [
                "kafka-acls.sh",
                "--bootstrap-server",
                bootstrap_servers,
                *config,
                "--add",
                *allowed,
                *(word for operation in grant.operations for word in ("--operation", operation)),
                f"--{grant.kind}",
                grant.name,
            ]
        )
        for grant in grants(role, topics)
    ]

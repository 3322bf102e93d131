"""`loopwarden topics acls`"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection

Principals: TypeAlias = list[str] | None


def _for(option: str, what: str) -> Any:
    return typer.Option(option, metavar="PRINCIPAL", help=f"Who {what}. May be given several times.")


def topics_acls(
    gateway: Annotated[Principals, _for("--gateway", "publishes events, and may do nothing else")] = None,
    runner: Annotated[Principals, _for("--runner", "reads verdicts and how far they are judged")] = None,
    worker: Annotated[Principals, _for("--worker", "judges")] = None,
    operator: Annotated[
        Principals, _for("--operator", "publishes, overrides, applies policies, looks after dead letters")
    ] = None,
    analyst: Annotated[Principals, _for("--analyst", "reads everything, and changes nothing")] = None,
    selftest: Annotated[Principals, _for("--selftest", "runs `loopwarden selftest`")] = None,
    admin: Annotated[Principals, _for("--admin", "runs `loopwarden topics plan`, `apply` and `check`")] = None,
    command_config: Annotated[
        str | None,
        typer.Option(
            "--command-config", metavar="FILE", help="Stands in each command: the properties of who carries it out."
        ),
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Print the `kafka-acls.sh` commands that give each role what it needs, and no more. Nothing is carried out.

    A principal is a user's name, or as Kafka writes it (User:NAME; of a client certificate its subject, such as
    User:CN=gateway). A process that is two things, such as the sidecar (gateway and runner), has both.

    Examples:

        loopwarden topics acls --gateway gateway --runner runner --worker worker

        loopwarden topics acls --worker User:CN=worker --command-config admin.properties | sh

    Exit code 0; 2 where nobody is named.
    """
    from loopwarden.cli.mistakes import Mistake
    from loopwarden.client.acls import ROLES, commands

    given = {
        "gateway": gateway,
        "runner": runner,
        "worker": worker,
        "operator": operator,
        "analyst": analyst,
        "selftest": selftest,
        "admin": admin,
    }
    cluster = connection(broker, prefix, properties)
    if not any(given.values()):
        raise Mistake("topics acls: must be told for whom, such as --gateway gateway --runner runner --worker worker")
    topics = cluster.topics()
    for role, does in ROLES.items():
        principals = given[role]
        if principals:
            print(f"# {role}: {does}")
            for command in commands(role, principals, topics, cluster.bootstrap_servers, command_config):
                print(command)

"""What can go wrong with a cluster. Each message says what, where, and the way out; none needs a traceback.

ClusterError
  WrongSetting        an address, a prefix or a client property is none
  BrokerUnavailable   nothing answers as Kafka at an address
    NotLetIn          the broker refuses who this client says it is, or this client refuses the broker's certificate
  NotAuthorized       this client's principal has not the right that is needed
  TopicsFailed        a topic could not be created or changed, or has no leader
  TopicsRefused       topics are asked for that would break what is there
  TopicMissing        a topic that is needed is not there
  NotPublished        events were not acknowledged
  NoSuchPolicy        the archive of policies does not hold a number
  PolicyNotApplied    a policy is not in every partition yet
"""

from typing import NamedTuple


class ClusterError(Exception):
    """Any of the causes above."""


class WrongSetting(ClusterError):
    """An address, a prefix or a client property is none."""


class BrokerUnavailable(ClusterError):
    """Nothing answers as Kafka at an address."""


class NotLetIn(BrokerUnavailable):
    """The broker refuses who this client says it is, or this client refuses the broker's certificate."""


class Missing(NamedTuple):
    """A right that a principal has not.

    Attributes:
        kind: `topic` or `group`.
        name: Of the topic or group.
        right: As `kafka-acls.sh` names it, such as `Write`.
    """

    kind: str
    name: str
    right: str


class NotAuthorized(ClusterError):
    """This client's principal has not a right that is needed.

    Args:
        principal: Such as `User:gateway`.
        bootstrap_servers: Of the cluster.
        missing: The rights, at least one.
    """

    def __init__(self, principal: str, bootstrap_servers: str, *missing: Missing) -> None:
        self.missing = missing
        resources = dict.fromkeys((each.kind, each.name) for each in missing)
        rights = "; ".join(
            f"{' and '.join(each.right for each in missing if each[:2] == (kind, name))} on {kind} {name}"
            for kind, name in resources
        )
        user = f"'{principal}'" if principal.startswith("User:") else "PRINCIPAL"
        first = missing[0]
        way_out = (
            f"kafka-acls.sh --bootstrap-server {bootstrap_servers} --add --allow-principal {user} --operation"
            f" {first.right} --{first.kind} {first.name}"
        )
        super().__init__(
            f"{bootstrap_servers}: {principal} must have the right {rights}: it has not. An administrator gives it:"
            f" {way_out if len(missing) == 1 else 'one command for each'}; `loopwarden topics acls` prints those of"
            " each role"
        )


class TopicsFailed(ClusterError):
    """A topic could not be created or changed, or has no leader in time."""


class TopicsRefused(ClusterError):
    """Topics are asked for that would break what is there: one line for each."""


class TopicMissing(ClusterError):
    """A topic that is needed is not there."""

    def __init__(self, topic: str, bootstrap_servers: str, prefix: str) -> None:
        option = f" --prefix {prefix}" if prefix else ""
        super().__init__(
            f"{topic}: must exist at {bootstrap_servers}, but does not."
            f" `loopwarden topics apply --broker kafka://{bootstrap_servers}{option}` creates the topics that are"
            " missing there"
        )


class NotPublished(ClusterError):
    """Events were not acknowledged by the broker."""


class NoSuchPolicy(ClusterError):
    """The archive of policies does not hold a number."""


class PolicyNotApplied(ClusterError):
    """A policy is archived, but not in every partition yet."""

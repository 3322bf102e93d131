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


class ClusterError(Exception):
    """Any of the causes above."""


class WrongSetting(ClusterError):
    """An address, a prefix or a client property is none."""


class BrokerUnavailable(ClusterError):
    """Nothing answers as Kafka at an address."""


class NotLetIn(BrokerUnavailable):
    """The broker refuses who this client says it is, or this client refuses the broker's certificate."""


class NotAuthorized(ClusterError):
    """This client's principal has not the right that is needed.

    Args:
        kind: `topic`, `group` or `cluster`.
        name: Of the topic or group; a cluster has none.
        right: As `kafka-acls.sh` names it, such as `Write`.
        principal: Such as `User:gateway`.
        bootstrap_servers: For the way out.
    """

    def __init__(self, kind: str, name: str, right: str, principal: str, bootstrap_servers: str) -> None:
        self.right = right
        what = f"{kind} {name}".strip()
        user = f"'{principal}'" if principal.startswith("User:") else "PRINCIPAL"
        of = f" --{kind} {name}".rstrip()
        super().__init__(
            f"{what} at {bootstrap_servers}: {principal} must have the right {right}, but has not. An administrator"
            f" gives it: kafka-acls.sh --bootstrap-server {bootstrap_servers} --add --allow-principal {user}"
            f" --operation {right}{of}; `loopwarden topics acls` prints all that each role needs"
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

"""What can go wrong with a cluster. Each message says what, where, and the way out; none needs a traceback.

ClusterError
  WrongSetting        an address or a prefix is none
  BrokerUnavailable   nothing answers as Kafka at an address
  TopicsFailed        a topic could not be created, or has no leader
  TopicMissing        a topic that is needed is not there
  NotPublished        events were not acknowledged
  NoSuchPolicy        the archive of policies does not hold a number
  PolicyNotApplied    a policy is not in every partition yet
"""


class ClusterError(Exception):
    """Any of the causes above."""


class WrongSetting(ClusterError):
    """An address or a prefix is none."""


class BrokerUnavailable(ClusterError):
    """Nothing answers as Kafka at an address."""


class TopicsFailed(ClusterError):
    """A topic could not be created, or has no leader in time."""


class TopicMissing(ClusterError):
    """A topic that is needed is not there."""

    def __init__(self, topic: str, bootstrap_servers: str, prefix: str) -> None:
        option = f" --prefix {prefix}" if prefix else ""
        super().__init__(
            f"{topic}: must exist at {bootstrap_servers}, but does not."
            f" `loopwarden up --broker kafka://{bootstrap_servers}{option}` creates the topics that are missing there"
        )


class NotPublished(ClusterError):
    """Events were not acknowledged by the broker."""


class NoSuchPolicy(ClusterError):
    """The archive of policies does not hold a number."""


class PolicyNotApplied(ClusterError):
    """A policy is archived, but not in every partition yet."""

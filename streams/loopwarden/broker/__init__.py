"""Apache Kafka on one's own machine."""

from loopwarden.broker.errors import (
    BrokerError,
    BrokerFailed,
    DataDirInUse,
    DownloadFailed,
    JarChanged,
    MissingExtra,
)
from loopwarden.broker.local import LocalBroker
from loopwarden.broker.progress import Progress, progress_bar
from loopwarden.client import BrokerUnavailable, TopicsFailed, admin_client, create_topics

__all__ = [
    "BrokerError",
    "BrokerFailed",
    "BrokerUnavailable",
    "DataDirInUse",
    "DownloadFailed",
    "JarChanged",
    "LocalBroker",
    "MissingExtra",
    "Progress",
    "TopicsFailed",
    "admin_client",
    "create_topics",
    "progress_bar",
]

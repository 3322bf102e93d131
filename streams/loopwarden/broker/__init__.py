"""Apache Kafka on one's own machine, and topics created through the admin API of any Kafka."""

from loopwarden.broker.admin import admin_client, create_topics
from loopwarden.broker.errors import (
    BrokerError,
    BrokerFailed,
    BrokerUnavailable,
    DataDirInUse,
    DownloadFailed,
    JarChanged,
    MissingExtra,
    TopicsFailed,
)
from loopwarden.broker.local import LocalBroker
from loopwarden.broker.progress import Progress, progress_bar

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

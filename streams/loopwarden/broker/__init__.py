"""Apache Kafka on one's own machine."""

from loopwarden.broker.cluster import LocalCluster
from loopwarden.broker.errors import (
    BrokerError,
    BrokerFailed,
    DataDirInUse,
    DownloadFailed,
    JarChanged,
    MissingExtra,
    PortTaken,
)
from loopwarden.broker.local import LocalBroker
from loopwarden.broker.progress import Progress, progress_bar
from loopwarden.broker.security import ListenerSecurity, Protocol
from loopwarden.client import BrokerUnavailable, TopicsFailed, admin_client, create_topics

__all__ = [
    "BrokerError",
    "BrokerFailed",
    "BrokerUnavailable",
    "DataDirInUse",
    "DownloadFailed",
    "JarChanged",
    "ListenerSecurity",
    "LocalBroker",
    "LocalCluster",
    "MissingExtra",
    "PortTaken",
    "Progress",
    "Protocol",
    "TopicsFailed",
    "admin_client",
    "create_topics",
    "progress_bar",
]

"""How everything outside the worker reaches a cluster: events in, verdicts out, policies, topics. (kafka-python.)"""

from loopwarden.client.admin import BROKERS_DEFAULT, admin_client, create_topics, partition_count
from loopwarden.client.bulk import RecordRead, read_range
from loopwarden.client.errors import (
    BrokerUnavailable,
    ClusterError,
    NoSuchPolicy,
    NotPublished,
    PolicyNotApplied,
    TopicMissing,
    TopicsFailed,
    WrongSetting,
)
from loopwarden.client.follower import Follower, Record, following
from loopwarden.client.judged import judged_offsets, wait_until_judged
from loopwarden.client.policies_kept import applied_before
from loopwarden.client.policy_apply import Applied, apply_policy, write_applied
from loopwarden.client.policy_archive import ArchivedPolicy, append_policy, archived, read_archive
from loopwarden.client.policy_in_force import InForce, policies_in_force
from loopwarden.client.producer import EventProducer, event_producer
from loopwarden.client.settings import Connection

__all__ = [
    "BROKERS_DEFAULT",
    "Applied",
    "ArchivedPolicy",
    "BrokerUnavailable",
    "ClusterError",
    "Connection",
    "EventProducer",
    "Follower",
    "InForce",
    "NoSuchPolicy",
    "NotPublished",
    "PolicyNotApplied",
    "Record",
    "RecordRead",
    "TopicMissing",
    "TopicsFailed",
    "WrongSetting",
    "admin_client",
    "append_policy",
    "applied_before",
    "apply_policy",
    "archived",
    "create_topics",
    "event_producer",
    "following",
    "judged_offsets",
    "partition_count",
    "policies_in_force",
    "read_archive",
    "read_range",
    "wait_until_judged",
    "write_applied",
]

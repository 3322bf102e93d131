"""How everything outside the worker reaches a cluster: events in, verdicts out, policies, topics. (kafka-python.)"""

from loopwarden.client.admin import BROKERS_DEFAULT, admin_client, create_topics, partition_count
from loopwarden.client.bulk import RecordRead, read_range
from loopwarden.client.dead_letters import (
    DeadLetters,
    FoundLetter,
    Replay,
    Sending,
    event_partitions,
    read_dead_letters,
    read_original,
    replay,
)
from loopwarden.client.errors import (
    BrokerUnavailable,
    ClusterError,
    NoSuchPolicy,
    NotAuthorized,
    NotLetIn,
    NotPublished,
    PolicyNotApplied,
    TopicMissing,
    TopicsFailed,
    TopicsRefused,
    WrongSetting,
)
from loopwarden.client.follower import Follower, Record, following
from loopwarden.client.judged import judged_offsets, wait_until_judged
from loopwarden.client.policies_kept import applied_before
from loopwarden.client.policy_apply import Applied, apply_policy, write_applied
from loopwarden.client.policy_archive import ArchivedPolicy, append_policy, archived, read_archive
from loopwarden.client.policy_in_force import InForce, policies_in_force
from loopwarden.client.producer import EventProducer, event_producer
from loopwarden.client.security import Security
from loopwarden.client.settings import Connection
from loopwarden.client.topics import apply_declarations, find_differences, find_topics

__all__ = [
    "BROKERS_DEFAULT",
    "Applied",
    "ArchivedPolicy",
    "BrokerUnavailable",
    "ClusterError",
    "Connection",
    "DeadLetters",
    "EventProducer",
    "Follower",
    "FoundLetter",
    "InForce",
    "NoSuchPolicy",
    "NotAuthorized",
    "NotLetIn",
    "NotPublished",
    "PolicyNotApplied",
    "Record",
    "RecordRead",
    "Replay",
    "Security",
    "Sending",
    "TopicMissing",
    "TopicsFailed",
    "TopicsRefused",
    "WrongSetting",
    "admin_client",
    "append_policy",
    "applied_before",
    "apply_declarations",
    "apply_policy",
    "archived",
    "create_topics",
    "event_partitions",
    "event_producer",
    "find_differences",
    "find_topics",
    "following",
    "judged_offsets",
    "partition_count",
    "policies_in_force",
    "read_archive",
    "read_dead_letters",
    "read_original",
    "read_range",
    "replay",
    "wait_until_judged",
    "write_applied",
]

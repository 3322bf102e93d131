from __future__ import annotations

import pytest

from loopwarden.broker import LocalBroker, admin_client, create_topics
from loopwarden_schemas.topics import Topics


@pytest.mark.parametrize("topics", [3], indirect=True)
def test_created_topics_are_those_declared_and_every_partition_has_its_leader(
    broker: LocalBroker, topics: Topics
) -> None:
    with admin_client(broker.bootstrap_servers) as client:
        found = {topic["name"]: topic for topic in client.describe_topics([topic.name for topic in topics.all()])}
    for topic in topics.all():
        partitions = found[topic.name]["partitions"]
        assert len(partitions) == topic.partitions
        assert all(partition["leader_id"] >= 0 for partition in partitions)


def test_topics_that_exist_are_left_as_they_are(broker: LocalBroker, topics: Topics) -> None:
    assert create_topics(broker.bootstrap_servers, topics) == []

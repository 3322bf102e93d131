import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from loopwarden_schemas.topics import MAX_RECORD_BYTES, declared_topics, partition_for

DAY_MS = 86_400_000


def test_the_topics_have_the_names_of_the_contract() -> None:
    assert [topic.name for topic in declared_topics().all()] == [
        "agent-events",
        "loop-verdicts",
        "loop-progress",
        "loop-policies",
        "agent-events-dead",
        "loopwarden-runs-changelog",
    ]


def test_a_prefix_is_put_in_front_of_every_name_and_of_the_app_id() -> None:
    topics = declared_topics("team-")
    assert topics.events.name == "team-agent-events"
    assert topics.app_id == "team-loopwarden"
    assert topics.changelog.name == f"{topics.app_id}-runs-changelog"
    assert all(topic.name.startswith("team-") for topic in topics.all())


def test_all_topics_but_the_policies_have_the_partitions_asked_for() -> None:
    topics = declared_topics(partitions=3)
    assert {topic.partitions for topic in topics.all() if topic is not topics.policies} == {3}
    assert topics.policies.partitions == 1


def test_events_carry_the_brokers_append_time_and_hold_a_record_of_the_largest_size() -> None:
    config = declared_topics().events.config
    assert config["message.timestamp.type"] == "LogAppendTime"
    assert int(config["max.message.bytes"]) > MAX_RECORD_BYTES


def test_what_is_kept_how_long() -> None:
    topics = declared_topics()
    retained_days = {
        topic.name: int(topic.config["retention.ms"]) / DAY_MS
        for topic in (topics.events, topics.verdicts, topics.dead)
    }
    assert retained_days == {"agent-events": 14, "loop-verdicts": 14, "agent-events-dead": 30}
    assert topics.policies.config["retention.ms"] == topics.policies.config["retention.bytes"] == "-1"
    assert {topic.name for topic in topics.all() if topic.config["cleanup.policy"] == "compact"} == {
        "loop-progress",
        "loopwarden-runs-changelog",
    }
    assert topics.changelog.config["min.compaction.lag.ms"] == "3600000"


@pytest.mark.parametrize(
    ("prefix", "found"), [("team/", "'/'"), ("my team-", "' '"), ("größe-", "'ö'"), ("a\n", "'\\n'")]
)
def test_a_prefix_kafka_does_not_allow_is_refused_with_the_character_found(prefix: str, found: str) -> None:
    with pytest.raises(ValueError, match="topic prefix: must consist of the characters Kafka allows") as refused:
        declared_topics(prefix)
    assert str(refused.value).endswith(f"got {prefix!r}, which has {found}")


def test_a_prefix_that_makes_a_name_too_long_is_refused() -> None:
    longest = 249 - len("loopwarden-runs-changelog")
    assert len(declared_topics("x" * longest).changelog.name) == 249
    with pytest.raises(ValueError, match="at most 249 characters long, got one of 250"):
        declared_topics("x" * (longest + 1))


def test_a_number_of_partitions_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="partitions: must be at least 1, got 0"):
        declared_topics(partitions=0)


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=1000))
def test_keys_lie_where_the_kafka_clients_put_them(key: bytes, partitions: int) -> None:
    expected = (kafka_python_murmur2(key) & 0x7FFFFFFF) % partitions
    assert partition_for(key, partitions) == expected
    assert (aiokafka_murmur2(key) & 0x7FFFFFFF) % partitions == expected


@given(st.text(max_size=60))
def test_a_text_key_lies_where_its_utf8_bytes_do(run_id: str) -> None:
    assert partition_for(run_id, 8) == partition_for(run_id.encode(), 8)


@pytest.mark.parametrize(
    ("key", "unsigned"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_keys_of_the_java_clients_own_test_give_its_hashes(key: bytes, unsigned: int) -> None:
    """Source: org.apache.kafka.common.utils.UtilsTest.testMurmur2."""
    assert partition_for(key, 2**31) == unsigned & 0x7FFFFFFF

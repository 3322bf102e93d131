"""What is otherwise than declared, what mends it, and what is refused."""

from __future__ import annotations

import pytest

from loopwarden_schemas.topic_differences import Difference, Found, Wanted, differences, refused, to_do
from loopwarden_schemas.topics import declared_topics

KAFKAS_DEFAULTS = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
}


def cluster(partitions: int = 4, replicas: int = 1, **changed: Found | None) -> dict[str, Found]:
    """A cluster with the declared topics, but for those that are changed (None: not there), dashes as underscores."""
    found = {
        topic.name: Found(topic.partitions, replicas, {**KAFKAS_DEFAULTS, **topic.config})
        for topic in declared_topics("", partitions).all()
    }
    for name, topic in changed.items():
        del found[name.replace("_", "-")]
        if topic is not None:
            found[name.replace("_", "-")] = topic
    return found


def with_config(name: str, **config: str) -> dict[str, Found]:
    found = cluster()
    found[name] = Found(found[name].partitions, 1, {**found[name].config, **config})
    return found


def with_partitions(**partitions: int) -> dict[str, Found]:
    found = cluster()
    for name, count in partitions.items():
        topic = name.replace("_", "-")
        found[topic] = Found(count, 1, found[topic].config)
    return found


def the_one(found: list[Difference]) -> Difference:
    [difference] = found
    return difference


def test_topics_as_they_are_declared_have_no_difference_whatever_their_number_of_partitions() -> None:
    for partitions in (1, 8, 100):
        assert differences(Wanted(), cluster(partitions)) == []


def test_topics_of_others_do_not_count() -> None:
    others = Found(3, 1, {})
    assert differences(Wanted(), {**cluster(), "orders": others}) == []


def test_a_missing_topic_is_created_with_as_many_partitions_as_the_events_have() -> None:
    difference = the_one(differences(Wanted(partitions=4), cluster(loop_verdicts=None)))
    assert (difference.topic, difference.change, difference.wanted) == ("loop-verdicts", "create", "4 partitions")
    assert difference.breaks_guarantees


def test_lost_events_come_back_with_the_partitions_that_the_states_have() -> None:
    difference = the_one(differences(Wanted(), cluster(agent_events=None)))
    assert (difference.topic, difference.wanted) == ("agent-events", "4 partitions")


@pytest.mark.parametrize(
    ("topic", "setting", "found", "wanted", "breaks"),
    [
        ("agent-events", "message.timestamp.type", "CreateTime", "LogAppendTime", True),
        ("agent-events", "cleanup.policy", "compact", "delete", True),
        ("agent-events", "cleanup.policy", "delete,compact", "delete", True),
        ("agent-events", "retention.ms", "3600000", "1209600000", False),
        ("agent-events", "max.message.bytes", "1048588", "1114112", False),
        ("agent-events", "unclean.leader.election.enable", "true", "false", True),
        ("loopwarden-runs-changelog", "cleanup.policy", "compact,delete", "compact", True),
        ("loopwarden-runs-changelog", "min.compaction.lag.ms", "0", "3600000", True),
        ("loopwarden-runs-changelog", "max.message.bytes", "100000", "1048588", True),
        ("loopwarden-runs-changelog", "max.message.bytes", "900000", "1048588", False),
        ("loop-progress", "cleanup.policy", "delete", "compact", True),
        ("loop-policies", "retention.ms", "604800000", "-1", True),
        ("loop-policies", "retention.bytes", "1000", "-1", True),
        ("loop-verdicts", "retention.ms", "1", "1209600000", False),
        ("agent-events-dead", "max.message.bytes", "1048588", "1179648", True),
    ],
)
def test_a_setting_that_is_less_than_declared_is_altered(
    topic: str, setting: str, found: str, wanted: str, breaks: bool
) -> None:
    difference = the_one(differences(Wanted(), with_config(topic, **{setting: found})))
    assert (difference.topic, difference.setting, difference.found) == (topic, setting, found)
    assert (difference.wanted, difference.change, difference.breaks_guarantees) == (wanted, "alter", breaks)


@pytest.mark.parametrize(
    ("topic", "setting", "more"),
    [
        ("agent-events", "retention.ms", "-1"),
        ("loop-verdicts", "retention.ms", "99999999999"),
        ("agent-events-dead", "max.message.bytes", "9999999"),
        ("loopwarden-runs-changelog", "min.compaction.lag.ms", "7200000"),
    ],
)
def test_more_than_is_declared_is_no_difference(topic: str, setting: str, more: str) -> None:
    assert differences(Wanted(), with_config(topic, **{setting: more})) == []


@pytest.mark.parametrize("asked", [2, 12])
def test_another_number_of_partitions_than_the_runs_are_hashed_to_is_refused(asked: int) -> None:
    difference = the_one(differences(Wanted(partitions=asked), cluster()))
    assert (difference.topic, difference.setting, difference.change) == ("agent-events", "partitions", "none")
    assert "move away from their states" in difference.why
    assert "--prefix" in difference.way_out


def test_a_changelog_with_another_number_is_never_changed() -> None:
    for count in (2, 12):
        difference = the_one(refused(differences(Wanted(), with_partitions(loopwarden_runs_changelog=count))))
        assert (difference.topic, difference.change) == ("loopwarden-runs-changelog", "none")
        assert difference.breaks_guarantees


def test_partitions_that_others_lack_are_added() -> None:
    found = differences(Wanted(), with_partitions(loop_verdicts=2, loop_progress=1, agent_events_dead=3))
    assert [(each.topic, each.change, each.wanted) for each in found] == [
        ("loop-verdicts", "add partitions", "4"),
        ("loop-progress", "add partitions", "4"),
        ("agent-events-dead", "add partitions", "4"),
    ]


def test_nothing_is_added_where_somebody_gave_the_events_other_partitions_than_the_states() -> None:
    found = differences(Wanted(), with_partitions(agent_events=6))
    assert {each.topic for each in refused(found)} == {
        "loop-verdicts",
        "loop-progress",
        "agent-events-dead",
        "loopwarden-runs-changelog",
    }
    assert to_do(found) == []


def test_partitions_are_never_taken_away() -> None:
    for name in ("loop_verdicts", "loop_progress", "agent_events_dead"):
        assert the_one(differences(Wanted(), with_partitions(**{name: 9}))).change == "none"
    assert the_one(differences(Wanted(), with_partitions(loop_policies=2))).change == "none"


def test_replicas_are_added_and_never_taken_away() -> None:
    more = differences(Wanted(replication=2), cluster())
    assert {(each.setting, each.change) for each in more} == {("replication factor", "add replicas")}
    fewer = differences(Wanted(replication=1), cluster(replicas=2))
    assert {(each.setting, each.change) for each in fewer} == {("replication factor", "none")}
    assert differences(Wanted(), cluster(replicas=2)) == []


def test_with_three_replicas_two_must_have_a_record() -> None:
    for found in (differences(Wanted(), cluster(replicas=3)), differences(Wanted(replication=3), cluster(replicas=3))):
        assert {(each.setting, each.wanted, each.breaks_guarantees) for each in found} == {
            ("min.insync.replicas", "2", False)
        }
        assert len(found) == 6
    assert differences(Wanted(in_sync=1), cluster(replicas=3)) == []


def test_more_in_sync_replicas_than_replicas_are_lowered_since_nothing_could_be_written() -> None:
    difference = the_one(differences(Wanted(), with_config("loop-verdicts", **{"min.insync.replicas": "2"})))
    assert (difference.wanted, difference.change, difference.breaks_guarantees) == ("1", "alter", True)


def test_a_difference_says_what_where_the_rule_what_was_found_and_why() -> None:
    difference = the_one(differences(Wanted(), with_config("agent-events", **{"retention.ms": "1"})))
    assert difference.in_words() == (
        "agent-events: retention.ms must be at least 1209600000, got 1: what is kept shorter cannot be replayed"
    )

from __future__ import annotations

import pytest

from loopwarden.client import Connection, WrongSetting


def test_what_is_given_comes_before_the_environment_and_our_variable_before_kafkas() -> None:
    environment = {"LOOPWARDEN_BOOTSTRAP_SERVERS": "ours:1", "KAFKA_BOOTSTRAP_SERVERS": "theirs:2"}
    assert Connection.given("kafka://given:3", environment=environment).bootstrap_servers == "given:3"
    assert Connection.given(environment=environment).bootstrap_servers == "ours:1"
    del environment["LOOPWARDEN_BOOTSTRAP_SERVERS"]
    assert Connection.given(environment=environment).bootstrap_servers == "theirs:2"
    assert Connection.given(environment={}).bootstrap_servers == "localhost:9092"


def test_an_empty_variable_counts_as_not_given() -> None:
    environment = {"LOOPWARDEN_BOOTSTRAP_SERVERS": " ", "KAFKA_BOOTSTRAP_SERVERS": "theirs:2"}
    assert Connection.given(environment=environment).bootstrap_servers == "theirs:2"


def test_the_prefix_stands_in_front_of_every_topic() -> None:
    connection = Connection.given(environment={"LOOPWARDEN_TOPIC_PREFIX": "team-"})
    assert connection.topics().events.name == "team-agent-events"
    assert Connection.given(prefix="", environment={"LOOPWARDEN_TOPIC_PREFIX": "team-"}).topic_prefix == ""


@pytest.mark.parametrize(
    ("broker", "prefix", "environment", "named"),
    [
        ("nonsense:port", None, {}, "--broker"),
        (None, None, {"KAFKA_BOOTSTRAP_SERVERS": "a:1,b:0"}, "KAFKA_BOOTSTRAP_SERVERS"),
        (None, "a b", {}, "--prefix"),
        (None, None, {"LOOPWARDEN_TOPIC_PREFIX": "ä"}, "LOOPWARDEN_TOPIC_PREFIX"),
    ],
)
def test_a_wrong_setting_is_named_with_where_it_was_given(
    broker: str | None, prefix: str | None, environment: dict[str, str], named: str
) -> None:
    with pytest.raises(WrongSetting, match=f"^{named}: "):
        Connection.given(broker, prefix, environment)

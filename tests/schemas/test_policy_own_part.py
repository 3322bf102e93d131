from __future__ import annotations

from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_own_part import own_part

STRICT = {"tools": {"loopDetection": {"enabled": True}, "loopwarden": {"abortAfterBlocks": 5}}}


def test_what_else_stands_in_a_configuration_is_left_out() -> None:
    agents = [
        {"id": "a", "token": "secret", "tools": {"loopDetection": {"enabled": False}, "allow": ["*"]}},
        {"id": "b", "tools": {"allow": ["*"]}},
        "nonsense",
    ]
    whole = {"models": {"apiKey": "secret"}, "tools": {**STRICT["tools"], "allow": ["*"]}, "agents": {"list": agents}}
    agent = {"id": "a", "tools": {"loopDetection": {"enabled": False}}}
    assert own_part(PolicyDocument.from_value(whole)).value == {**STRICT, "agents": {"list": [agent]}}


def test_a_document_that_is_only_a_policy_stays_as_it_is() -> None:
    document = PolicyDocument.from_value({**STRICT, "agents": {"list": [{"id": "a", "tools": STRICT["tools"]}]}})
    assert own_part(document).digest == document.digest


def test_both_resolve_to_the_same_policies() -> None:
    agents = [
        {"id": "a", "tools": {"loopDetection": {"historySize": 5}}},
        {"id": "a"},
        {"id": "b", "tools": {"allow": ["*"]}},
        {"id": "b", "tools": {"loopDetection": {"historySize": 5}, "loopwarden": {"abortAfterBlocks": 2}}},
    ]
    document = PolicyDocument.from_value({"agents": {"list": agents}})
    for agent in (None, "a", "b"):
        assert own_part(document).resolve(agent) == document.resolve(agent)

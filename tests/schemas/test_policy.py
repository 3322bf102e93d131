"""Facts about policies: layers, clamping, the resolved table, documents."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loopwarden_schemas.digests import digest
from loopwarden_schemas.policy import (
    ABORT_AFTER_BLOCKS,
    DEFAULT_DOCUMENT,
    MAX_THRESHOLD,
    MAX_WINDOW,
    SETTINGS,
    Policy,
    PolicyDocument,
    resolve,
)
from loopwarden_schemas.policy_effect import effective
from loopwarden_schemas.policy_models import PolicyFile

VECTORS = Path(__file__).parents[1] / "vectors"
DEFAULTS = resolve()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
settings_values = st.integers(-2, 400) | st.booleans() | json_values
blocks = st.dictionaries(
    st.sampled_from([setting.path.split(".")[0] for setting in SETTINGS]),
    settings_values
    | st.dictionaries(
        st.sampled_from(["genericRepeat", "knownPollNoProgress", "pingPong", "windowSize"]), settings_values
    ),
)
own_blocks = st.dictionaries(st.just(ABORT_AFTER_BLOCKS), settings_values) | json_values
documents = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.fixed_dictionaries({}, optional={"loopDetection": blocks | json_values, "loopwarden": own_blocks})
        | json_values,
        "agents": st.fixed_dictionaries(
            {},
            optional={
                "list": st.lists(
                    st.fixed_dictionaries(
                        {},
                        optional={
                            "id": st.sampled_from(["a", "b"]) | json_values,
                            "tools": st.fixed_dictionaries(
                                {}, optional={"loopDetection": blocks, "loopwarden": own_blocks}
                            )
                            | json_values,
                        },
                    )
                    | json_values,
                    max_size=3,
                )
            },
        )
        | json_values,
    },
)


def of_table(table: dict[str, Any]) -> Policy:
    """The policy of a resolved table."""
    return replace(resolve(table), abort_after_blocks=table.get(ABORT_AFTER_BLOCKS))


def cases(file: str, kind: str) -> list[Any]:
    lines = map(json.loads, (VECTORS / file).read_text(encoding="utf-8").splitlines())
    return [pytest.param(case, id=case.get("name", kind)) for case in lines if case["kind"] == kind]


def layers_of(case: dict[str, Any]) -> list[Any]:
    return list(case["configLayers"].values()) if "configLayers" in case else [case["config"]]


@pytest.mark.parametrize("case", cases("hashing-and-policy.jsonl", "config"))
def test_every_config_vector_resolves_as_the_reference_does(case: dict[str, Any]) -> None:
    policy = resolve(*layers_of(case))
    seen = {**policy.to_table(), "guardEnabled": policy.guard_on, "guardWindow": policy.guard_window}
    expected = case.get("resolved", {})
    assert {key: seen[key] for key in expected} == expected


@pytest.mark.parametrize("case", cases("hashing-and-policy.jsonl", "config"))
def test_the_models_accept_exactly_the_blocks_that_the_vectors_call_valid(case: dict[str, Any]) -> None:
    file = {"tools": {"loopDetection": layers_of(case)[0] or {}}}
    if case.get("schemaAccepts", True):
        PolicyFile.model_validate(file)
    else:
        with pytest.raises(ValidationError):
            PolicyFile.model_validate(file)


@pytest.mark.parametrize("case", cases("digests.jsonl", "policy_digest"))
def test_the_policy_digest_is_that_of_the_resolved_table(case: dict[str, Any]) -> None:
    policy = of_table(case["resolved"])
    assert policy.to_table() == case["resolved"]
    assert policy.digest == case["policy_digest"]


@given(st.lists(blocks | json_values, max_size=3))
def test_whatever_the_layers_hold_the_thresholds_are_in_order_and_the_windows_bounded(layers: list[Any]) -> None:
    policy = resolve(*layers)
    assert 0 < policy.warning_threshold < policy.critical_threshold < policy.global_circuit_breaker_threshold
    assert 0 < policy.history_size <= MAX_WINDOW
    assert 0 < policy.guard_window <= MAX_WINDOW
    assert policy.unknown_tool_threshold > 0


@given(st.lists(blocks | json_values, max_size=3))
def test_a_resolved_table_resolves_to_itself(layers: list[Any]) -> None:
    policy = resolve(*layers)
    again = of_table(json.loads(json.dumps(policy.to_table())))
    assert again == policy
    assert again.digest == policy.digest == digest(policy.to_table())


@pytest.mark.parametrize(
    "bad", [0, -1, 5.5, True, "5", None, [5], {}, float("nan"), float("inf"), MAX_THRESHOLD + 1, 1e300]
)
def test_a_bad_number_lets_the_layer_beneath_show_through(bad: object) -> None:
    assert resolve({"warningThreshold": 7}, {"warningThreshold": bad}).warning_threshold == 7
    assert resolve({"warningThreshold": bad}) == DEFAULTS


@pytest.mark.parametrize("bad", [1, 0, "true", None, []])
def test_a_bad_switch_lets_the_layer_beneath_show_through(bad: object) -> None:
    assert resolve({"enabled": False}, {"enabled": bad}).enabled is False
    assert resolve({"detectors": {"pingPong": False}}, {"detectors": {"pingPong": bad}}).ping_pong is False


def test_an_integral_float_is_its_integer() -> None:
    policy = resolve({"historySize": 40.0})
    assert type(policy.history_size) is int
    assert policy == resolve({"historySize": 40})


def test_detectors_and_guard_are_overlaid_key_by_key() -> None:
    policy = resolve(
        {"detectors": {"pingPong": False, "genericRepeat": False}, "postCompactionGuard": {"windowSize": 5}},
        {"detectors": {"pingPong": True}, "postCompactionGuard": {}},
    )
    assert (policy.ping_pong, policy.generic_repeat, policy.known_poll_no_progress) == (True, False, True)
    assert policy.guard_window == 5


def test_windows_above_their_maximum_are_clamped() -> None:
    policy = resolve({"historySize": 257, "postCompactionGuard": {"windowSize": 9000}})
    assert (policy.history_size, policy.guard_window) == (MAX_WINDOW, MAX_WINDOW)


@pytest.mark.parametrize(
    ("enabled", "detectors_on", "guard_on"), [(None, False, True), (True, True, True), (False, False, False)]
)
def test_the_detectors_need_a_true_and_the_guard_only_no_false(
    enabled: bool | None, detectors_on: bool, guard_on: bool
) -> None:
    policy = resolve({"enabled": enabled})
    assert (policy.detectors_on, policy.guard_on) == (detectors_on, guard_on)


@given(documents | json_values, st.sampled_from([None, "a", "b"]), blocks | json_values)
def test_any_json_value_is_a_document_that_resolves(value: Any, agent_id: str | None, override: Any) -> None:
    document = PolicyDocument.from_value(value)
    policy = document.resolve(agent_id)
    assert document.resolve(agent_id, {}) == policy
    assert {s.path: s.value for s in effective(document, agent_id)} == {
        **{setting.path: getattr(policy, setting.attribute) for setting in SETTINGS},
        "loopwarden.abortAfterBlocks": policy.abort_after_blocks,
    }
    assert document.resolve(agent_id, policy.to_table()) == policy
    assert document.resolve(agent_id, override).history_size <= MAX_WINDOW


def test_an_agents_block_lies_over_the_fleets_and_the_runs_own_over_both() -> None:
    document = PolicyDocument.from_value(
        {
            "tools": {"loopDetection": {"enabled": True, "warningThreshold": 5}},
            "agents": {
                "list": [{"id": "a", "tools": {"loopDetection": {"warningThreshold": 6, "criticalThreshold": 9}}}]
            },
        }
    )
    policy = document.resolve("a", {"criticalThreshold": 12})
    assert (policy.enabled, policy.warning_threshold, policy.critical_threshold) == (True, 6, 12)
    assert document.resolve("a").critical_threshold == 9
    assert document.resolve("b").warning_threshold == document.resolve(None).warning_threshold == 5


def test_of_an_agent_listed_twice_the_first_counts() -> None:
    agents = [{"id": "a"}, {"id": "a", "tools": {"loopDetection": {"warningThreshold": 6}}}]
    assert PolicyDocument.from_value({"agents": {"list": agents}}).resolve("a") == DEFAULTS


def test_blocks_that_are_ignored_end_no_run_unless_the_policy_says_so() -> None:
    assert DEFAULTS.abort_after_blocks is None
    assert "abortAfterBlocks" not in DEFAULTS.to_table()


def test_an_agents_limit_of_ignored_blocks_goes_before_the_fleets() -> None:
    agents = [
        {"id": "a", "tools": {"loopwarden": {"abortAfterBlocks": 3}}},
        {"id": "b", "tools": {"loopDetection": {"enabled": True}}},
    ]
    document = PolicyDocument.from_value({"tools": {"loopwarden": {"abortAfterBlocks": 5}}, "agents": {"list": agents}})
    limits = {agent: document.resolve(agent).abort_after_blocks for agent in ("a", "b", None)}
    assert limits == {"a": 3, "b": 5, None: 5}
    assert document.resolve("a", {"enabled": True}).abort_after_blocks == 3


def test_a_policy_with_such_a_limit_has_a_digest_of_its_own_and_comes_back_from_its_table() -> None:
    policy = PolicyDocument.from_value({"tools": {"loopwarden": {"abortAfterBlocks": 5}}}).resolve(None)
    assert policy.to_table() == {**DEFAULTS.to_table(), "abortAfterBlocks": 5}
    assert of_table(policy.to_table()) == policy
    assert policy.digest == digest(policy.to_table()) != DEFAULTS.digest


def test_agents_without_a_block_share_one_policy_and_many_of_them_take_no_memory() -> None:
    agents = [{"id": "a", "tools": {"loopDetection": {"warningThreshold": 6}}}]
    document = PolicyDocument.from_value({"agents": {"list": agents}})
    assert len({id(document.resolve(f"agent-{n}")) for n in range(1000)}) == 1
    assert document.resolve("a") is document.resolve("a") is not document.resolve(None)
    assert len(document._resolved) == 2


def test_the_digest_of_a_document_is_that_of_its_canonical_json() -> None:
    value = {"tools": {"loopDetection": {"enabled": True}}, "channels": ["\N{SNOWMAN}"]}
    assert PolicyDocument.from_value(value).digest == digest(value)
    assert DEFAULT_DOCUMENT.digest == digest({})
    assert DEFAULT_DOCUMENT.resolve(None) == DEFAULTS


@given(documents)
def test_a_document_that_the_models_accept_gives_every_value_it_states(value: Any) -> None:
    try:
        PolicyFile.model_validate(value)
    except ValidationError:
        return
    document = PolicyDocument.from_value(value)
    for setting in effective(document, None):
        path = setting.path if setting.path.startswith("loopwarden.") else f"loopDetection.{setting.path}"
        stated: Any = value.get("tools", {})
        for key in path.split("."):
            stated = stated.get(key) if stated is not None else None
        assert setting.given_by == ("default" if stated is None else "global")
        assert stated is None or setting.given == stated

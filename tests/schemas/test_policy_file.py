"""Facts about policy files: what is refused, what is warned about, and that the rest holds as written."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from loopwarden_schemas.canonical import canonical
from loopwarden_schemas.json5_text import read_json5
from loopwarden_schemas.policy import SETTINGS, resolve
from loopwarden_schemas.policy_effect import effective
from loopwarden_schemas.policy_file import PolicyError, PolicyFileError, read_policy_file

RECOMMENDED = Path(__file__).parents[2] / "infra" / "policies" / "recommended.json5"
VECTORS = Path(__file__).parents[1] / "vectors"


def errors_of(text: str) -> list[str]:
    return [str(error) for error in read_policy_file("policy.json", text=text).errors]


def warnings_of(text: str) -> list[str]:
    reading = read_policy_file("policy.json", text=text)
    assert reading.errors == ()
    return [str(warning) for warning in reading.warnings]


def block(**settings: Any) -> str:
    return json.dumps({"tools": {"loopDetection": settings}})


def test_a_mistake_says_path_rule_what_was_found_file_and_line() -> None:
    text = """{
      agents: { list: [
        { id: "a",
          tools: { loopDetection: {
            // a comment
            warningThreshold: "ten",
          } } },
      ] },
    }"""
    (error,) = read_policy_file("policy.json", text=text).errors
    assert str(error) == (
        "agents.list[0].tools.loopDetection.warningThreshold: must be a positive integer, "
        'got "ten" (policy.json, line 6)'
    )
    assert (error.path, error.rule, error.found, error.file, error.line) == (
        "agents.list[0].tools.loopDetection.warningThreshold",
        "must be a positive integer",
        '"ten"',
        "policy.json",
        6,
    )


def test_every_mistake_is_told_in_the_order_of_the_file() -> None:
    text = """{
      tools: {
        loopDetection: {
          enabled: "yes",
          historySize: 0,
          cooldown: 3,
          detectors: { pingpong: true, genericRepeat: 1 },
          postCompactionGuard: 3,
        },
        loopwarden: { color: "red" },
      },
      agents: { list: [
        { tools: { loopDetection: { enabled: null } } },
      ] },
    }"""
    reading = read_policy_file("policy.json", text=text)
    assert reading.document is None
    assert [(error.line, error.path) for error in reading.errors] == [
        (4, "tools.loopDetection.enabled"),
        (5, "tools.loopDetection.historySize"),
        (6, "tools.loopDetection.cooldown"),
        (7, "tools.loopDetection.detectors.genericRepeat"),
        (7, "tools.loopDetection.detectors.pingpong"),
        (8, "tools.loopDetection.postCompactionGuard"),
        (10, "tools.loopwarden.color"),
        (13, "agents.list[0].tools.loopDetection.enabled"),
        (13, "agents.list[0].id"),
    ]
    with pytest.raises(PolicyFileError) as refused:
        reading.accepted()
    assert str(refused.value).splitlines() == [str(error) for error in reading.errors]


def test_one_mistake_is_raised_as_it_is() -> None:
    reading = read_policy_file("policy.json", text=block(historySize=-1))
    with pytest.raises(PolicyError) as refused:
        reading.accepted()
    assert refused.value is reading.errors[0]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (0, "must be a positive integer, got 0"),
        (-3, "must be a positive integer, got -3"),
        (2.5, "must be a positive integer, got 2.5"),
        (True, "must be a positive integer, got true"),
        (None, "must be a positive integer, got null"),
        ([1], "must be a positive integer, got a list"),
        (2**53, "must be at most 9007199254740991, got 9007199254740992"),
        (float("nan"), "must be a finite number, got NaN"),
    ],
)
def test_a_number_must_be_a_positive_integer(value: object, rule: str) -> None:
    assert errors_of(block(warningThreshold=value)) == [
        f"tools.loopDetection.warningThreshold: {rule} (policy.json, line 1)"
    ]


def test_an_unknown_key_comes_with_the_one_that_was_meant() -> None:
    assert errors_of(block(warningTreshold=3)) == [
        "tools.loopDetection.warningTreshold: unknown key, did you mean warningThreshold? (policy.json, line 1)"
    ]


def own(**settings: Any) -> str:
    return json.dumps({"tools": {"loopDetection": {"enabled": True}, "loopwarden": settings}})


@pytest.mark.parametrize(("value", "found"), [(0, "0"), (-1, "-1"), ("ten", '"ten"'), (True, "true"), (None, "null")])
def test_the_limit_of_ignored_blocks_must_be_a_positive_integer(value: object, found: str) -> None:
    assert errors_of(own(abortAfterBlocks=value)) == [
        f"tools.loopwarden.abortAfterBlocks: must be a positive integer, got {found} (policy.json, line 1)"
    ]


def test_an_unknown_key_among_our_own_settings_is_told_with_those_there_are() -> None:
    assert errors_of(own(abortAfterBlock=3, color="red")) == [
        "tools.loopwarden.abortAfterBlock: unknown key, did you mean abortAfterBlocks? (policy.json, line 1)",
        "tools.loopwarden.color: unknown key, loopwarden has abortAfterBlocks (policy.json, line 1)",
    ]


def test_a_setting_of_ours_inside_openclaws_block_is_told_where_it_belongs() -> None:
    assert errors_of(block(abortAfterBlocks=3)) == [
        (
            "tools.loopDetection.abortAfterBlocks: unknown key, it is a setting of ours: move it to loopwarden, beside "
            "loopDetection (policy.json, line 1)"
        )
    ]


def test_an_agents_own_settings_are_checked_as_the_fleets_are() -> None:
    text = """{ tools: { loopDetection: {} }, agents: { list: [
      { id: "a", tools: { loopwarden: { abortAfterBlocks: 0 } } },
      { tools: { loopwarden: { abortAfterBlocks: 3 } } },
    ] } }"""
    assert errors_of(text) == [
        "agents.list[0].tools.loopwarden.abortAfterBlocks: must be a positive integer, got 0 (policy.json, line 2)",
        "agents.list[1].id: must name the agent that the block is for (policy.json, line 3)",
    ]


def test_a_limit_of_ignored_blocks_without_detectors_is_warned_about() -> None:
    text = """{ tools: { loopDetection: {}, loopwarden: { abortAfterBlocks: 3 } },
      agents: { list: [
        { id: "a", tools: { loopDetection: { enabled: true }, loopwarden: { abortAfterBlocks: 2 } } },
        { id: "b", tools: { loopwarden: { abortAfterBlocks: 2 } } },
    ] } }"""
    told = "abortAfterBlocks: no run will be ended by it: without `enabled: true` no call is blocked"
    assert warnings_of(text) == [
        f"tools.loopwarden.{told} (policy.json, line 1)",
        f"agents.list[1].tools.loopwarden.{told} (policy.json, line 4)",
    ]


def test_our_settings_of_an_agent_listed_twice_are_never_used() -> None:
    text = """{ tools: { loopDetection: { enabled: true } }, agents: { list: [{ id: "a" },
      { id: "a", tools: { loopwarden: { abortAfterBlocks: 2 } } },
    ] } }"""
    assert warnings_of(text) == [
        (
            'agents.list[1].tools.loopwarden: agent "a" is listed in line 1 already: this block is never used '
            "(policy.json, line 2)"
        )
    ]


def test_keys_elsewhere_are_none_of_our_business() -> None:
    text = """{
      channels: { telegram: { token: 'x' } }, warningThreshold: "ten",
      tools: { exec: { historySize: -1 }, loopDetection: { enabled: true } },
      agents: { defaults: {}, list: [{ id: "a", name: "A" }, { name: "no id, and no block" }] },
    }"""
    assert warnings_of(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "has no loopDetection block: write { tools: { loopDetection: { enabled: true } } }"),
        ('{ agents: { list: [{ id: "a" }] } }', "has no loopDetection block"),
        ("{ tools: { loopwarden: {} } }", "has no loopDetection block"),
        ("{ enabled: true, historySize: 5 }", "this is the block itself, wrap it as { tools: { loopDetection:"),
        ("{ loopDetection: {} }", "loopDetection must stand inside tools"),
    ],
)
def test_a_file_without_a_block_shows_how_to_wrap_it(text: str, told: str) -> None:
    (error,) = errors_of(text)
    assert told in error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", "must be an object, got a list (policy.json, line 1)"),
        ("{ tools: 5 }", "tools: must be an object, got 5 (policy.json, line 1)"),
        ("{ agents: { list: {} } }", "agents.list: must be a list, got an object (policy.json, line 1)"),
        ("", "must not be empty (policy.json, line 1)"),
        ("{\n a: 1\n b: 2 }", "not valid JSON5: ',' or '}' must stand here, got b (policy.json, line 3)"),
        (
            "{\n a: [1,\n\n",
            "not valid JSON5: the text ends too early, ']' or a value must follow (policy.json, line 2)",
        ),
        ('{\n a: "\\\\" @ }', "not valid JSON5: no such character may stand here, got '@' (policy.json, line 2)"),
        ('{ a: "b }', 'not valid JSON5: a text must end with the quote it begins with, got "b } (policy.json, line 1)'),
        (
            "{ a: '/*', // \" /*\n /**/ b: '\\'/*',\n /* c" + "\n" * 99 + "}",
            "not valid JSON5: a comment that begins with /* must end with */ (policy.json, line 3)",
        ),
        ("{} x", "not valid JSON5: nothing may follow the value, got x (policy.json, line 1)"),
        (f"{{ a: {'1' * 5000} }}", "numbers must have at most 4300 digits (policy.json, line 1)"),
    ],
)
def test_a_text_of_the_wrong_shape_is_told_with_its_line(text: str, error: str) -> None:
    assert errors_of(text) == [error]


def test_what_json_cannot_say_is_refused_anywhere_for_it_has_no_digest() -> None:
    deep = "[" * 70 + "]" * 70
    text = f'{{ tools: {{ loopDetection: {{}} }},\n a: Infinity,\n b: "\\ud800",\n c: {deep} }}'
    assert [(error.line, error.rule) for error in read_policy_file("policy.json", text=text).errors] == [
        (2, "must be a finite number"),
        (3, "must not hold lone surrogates"),
        (4, "must not be nested deeper than 64"),
    ]


def test_a_key_given_twice_is_refused_in_our_blocks_and_on_the_way_there() -> None:
    text = """{ z: 1, z: 2,
      tools: { loopDetection: { enabled: true,
        enabled: false } },
      agents: { list: [{ id: "a",
        id: "b" }] },
    }"""
    assert errors_of(text) == [
        "tools.loopDetection.enabled: must be given once, but line 2 gives it too (policy.json, line 3)",
        "agents.list[0].id: must be given once, but line 4 gives it too (policy.json, line 5)",
    ]


def test_files_that_cannot_be_read_are_told_without_a_traceback(tmp_path: Path) -> None:
    assert [str(e) for e in read_policy_file(tmp_path / "none").errors] == [f"there is no such file ({tmp_path}/none)"]
    assert [str(e) for e in read_policy_file(tmp_path).errors] == [f"must be a file, not a directory ({tmp_path})"]
    binary = tmp_path / "binary"
    binary.write_bytes(b"{\n\xff}")
    assert [str(e) for e in read_policy_file(binary).errors] == [
        f"must be UTF-8 text, got byte 0xff ({binary}, line 2)"
    ]
    binary.write_bytes(b" " * 1024 * 1024 + b"{")
    assert [str(e) for e in read_policy_file(binary).errors] == [
        f"must be at most 1 MiB, the size of a record, got more ({binary})"
    ]


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text("\ufeff" + block(enabled=True), encoding="utf-8")
    assert read_policy_file(file).accepted().resolve(None).enabled is True
    assert errors_of("\ufeff" + block(enabled=True)) == []


def test_a_misordered_pair_is_a_warning_that_says_what_is_used() -> None:
    assert warnings_of(block(warningThreshold=12, criticalThreshold=12)) == [
        (
            "tools.loopDetection.criticalThreshold: criticalThreshold 12 is not above warningThreshold 12: "
            "13 is used for criticalThreshold (policy.json, line 1)"
        )
    ]
    assert warnings_of(block(criticalThreshold=25, globalCircuitBreakerThreshold=25)) == [
        (
            "tools.loopDetection.globalCircuitBreakerThreshold: globalCircuitBreakerThreshold 25 is not above "
            "criticalThreshold 25: 26 is used for globalCircuitBreakerThreshold (policy.json, line 1)"
        )
    ]


def test_a_threshold_that_pushes_a_default_up_is_a_misordered_pair_too() -> None:
    assert warnings_of(block(warningThreshold=25)) == [
        (
            "tools.loopDetection.warningThreshold: criticalThreshold 20 (default) is not above warningThreshold 25: "
            "26 is used for criticalThreshold (policy.json, line 1)"
        )
    ]


def test_a_value_above_its_maximum_is_a_warning() -> None:
    history, guard = warnings_of(block(historySize=300, postCompactionGuard={"windowSize": 257}))
    assert history == "tools.loopDetection.historySize: 300 is above the maximum: 256 is used (policy.json, line 1)"
    assert guard.startswith("tools.loopDetection.postCompactionGuard.windowSize: 257 is above the maximum: 256 is used")


def test_a_short_history_names_the_tiers_that_never_fire() -> None:
    assert warnings_of(block(historySize=9)) == [
        f"tools.loopDetection.historySize: {message} (policy.json, line 1)"
        for message in (
            (
                "warningThreshold 10 is out of reach with 9 calls kept (historySize): "
                "known_poll_no_progress and generic_repeat will never warn"
            ),
            (
                "criticalThreshold 20 is out of reach with 9 calls kept (historySize): "
                "known_poll_no_progress, generic_repeat and ping_pong will never block"
            ),
            (
                "unknownToolThreshold 10 is out of reach with 9 calls kept (historySize): "
                "unknown_tool_repeat will never block"
            ),
            (
                "globalCircuitBreakerThreshold 30 is out of reach with 9 calls kept (historySize): "
                "global_circuit_breaker will never block"
            ),
        )
    ]


def test_an_alternation_reaches_one_more_than_the_calls_kept() -> None:
    def silent(critical: int) -> str:
        return warnings_of(
            block(historySize=20, criticalThreshold=critical, globalCircuitBreakerThreshold=critical + 1)
        )[0]

    assert "known_poll_no_progress and generic_repeat will never block" in silent(21)
    assert "known_poll_no_progress, generic_repeat and ping_pong will never block" in silent(22)
    assert "global_circuit_breaker will never block" in silent(20)


def test_a_detector_that_is_switched_off_is_not_missed() -> None:
    off = {"genericRepeat": False, "knownPollNoProgress": False}
    assert not any(
        "criticalThreshold" in warning
        for warning in warnings_of(block(historySize=20, criticalThreshold=21, detectors=off))
    )


def test_a_threshold_out_of_reach_of_the_default_history_is_told_at_the_threshold() -> None:
    (warning,) = warnings_of(block(unknownToolThreshold=31))
    assert warning.startswith(
        "tools.loopDetection.unknownToolThreshold: unknownToolThreshold 31 is out of reach with 30"
    )


def test_what_only_arises_when_layers_merge_is_told_at_the_agent_once() -> None:
    text = """{
      tools: { loopDetection: { criticalThreshold: 15 } },
      agents: { list: [
        { id: "a", tools: { loopDetection: {
            warningThreshold: 15 } } },
        { id: "b", tools: { loopDetection: { enabled: true } } },
      ] },
    }"""
    assert warnings_of(text) == [
        (
            "agents.list[0].tools.loopDetection.warningThreshold: criticalThreshold 15 (global) is not above "
            "warningThreshold 15: 16 is used for criticalThreshold (policy.json, line 5)"
        )
    ]


def test_what_the_fleets_block_says_is_not_told_again_for_its_agents() -> None:
    text = """{
      tools: { loopDetection: { historySize: 10, globalCircuitBreakerThreshold: 21, criticalThreshold: 5 } },
      agents: { list: [{ id: "a", tools: { loopDetection: { enabled: true } } }] },
    }"""
    assert [warning.split(":")[0] for warning in warnings_of(text)] == [
        "tools.loopDetection.criticalThreshold",
        *["tools.loopDetection.historySize"] * 2,
    ]


def test_an_agent_listed_twice_is_warned_about_for_its_second_block_is_never_used() -> None:
    text = '{ agents: { list: [\n{ id: "a" },\n{ id: "a", tools: { loopDetection: { enabled: true } } }] } }'
    assert warnings_of(text) == [
        (
            'agents.list[1].tools.loopDetection: agent "a" is listed in line 2 already: this block is never used '
            "(policy.json, line 3)"
        )
    ]


def test_the_recommended_policy_is_switched_on_and_has_nothing_to_warn_about() -> None:
    reading = read_policy_file(RECOMMENDED)
    assert reading.warnings == ()
    assert reading.accepted().resolve(None) == resolve({"enabled": True})


def test_the_overlay_shown_in_the_recommended_policy_is_valid() -> None:
    head, overlay = RECOMMENDED.read_text(encoding="utf-8").split("  //\n  // agents: {")
    text = head + "agents: {" + overlay.replace("  // ", "  ")
    reading = read_policy_file(RECOMMENDED, text=text)
    assert reading.warnings == ()
    assert reading.accepted().resolve("build-watcher").critical_threshold == 60


def test_the_setting_shown_in_the_recommended_policy_is_valid() -> None:
    text = RECOMMENDED.read_text(encoding="utf-8").replace("// abortAfterBlocks: 10", "abortAfterBlocks: 10")
    reading = read_policy_file(RECOMMENDED, text=text)
    assert reading.warnings == ()
    assert reading.accepted().resolve(None).abort_after_blocks == 10


def test_the_limit_of_ignored_blocks_comes_from_the_agent_or_the_fleet() -> None:
    text = """{ tools: { loopDetection: { enabled: true }, loopwarden: { abortAfterBlocks: 5 } },
      agents: { list: [{ id: "a", tools: { loopwarden: { abortAfterBlocks: 2 } } }] } }"""
    document = read_policy_file("policy.json", text=text).accepted()
    told = [effective(document, agent)[-1] for agent in ("a", "b", None)]
    assert [(setting.value, setting.origin) for setting in told] == [(2, "agent"), (5, "global"), (5, "global")]


def test_origins_are_default_global_agent_and_clamped() -> None:
    text = """{
      tools: { loopDetection: { enabled: true, historySize: 300 } },
      agents: { list: [
        { id: "a", tools: { loopDetection: { warningThreshold: 25, detectors: { pingPong: false } } } },
      ] },
    }"""
    document = read_policy_file("policy.json", text=text).accepted()
    told = {setting.path: setting for setting in effective(document, "a")}
    assert {path: (setting.value, setting.origin) for path, setting in told.items()} == {
        "enabled": (True, "global"),
        "historySize": (256, "clamped"),
        "warningThreshold": (25, "agent"),
        "criticalThreshold": (26, "clamped"),
        "unknownToolThreshold": (10, "default"),
        "globalCircuitBreakerThreshold": (30, "default"),
        "detectors.genericRepeat": (True, "default"),
        "detectors.knownPollNoProgress": (True, "default"),
        "detectors.pingPong": (False, "agent"),
        "postCompactionGuard.windowSize": (3, "default"),
        "loopwarden.abortAfterBlocks": (None, "default"),
    }
    assert (told["historySize"].given, told["historySize"].given_by) == (300, "global")
    assert (told["criticalThreshold"].given, told["criticalThreshold"].given_by) == (20, "default")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in map(json.loads, (VECTORS / "hashing-and-policy.jsonl").read_text("utf-8").splitlines())
        if case["kind"] == "config" and "config" in case
    ],
)
def test_every_config_vector_is_accepted_or_refused_as_it_says(case: dict[str, Any]) -> None:
    reading = read_policy_file("policy.json", text=block(**case["config"]))
    assert (reading.document is not None) == case.get("schemaAccepts", True)
    assert bool(reading.warnings) or not case.get("warns", False)


numbers = st.integers(1, 300)
switches = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["genericRepeat", "knownPollNoProgress", "pingPong"], st.booleans())
)
valid_blocks = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans(),
        "historySize": numbers,
        "warningThreshold": st.integers(1, 25),
        "criticalThreshold": numbers,
        "unknownToolThreshold": numbers,
        "globalCircuitBreakerThreshold": numbers,
        "detectors": switches,
        "postCompactionGuard": st.fixed_dictionaries({}, optional={"windowSize": numbers}),
    },
)


def flat(block: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in block.items():
        found.update({f"{key}.{inner}": v for inner, v in value.items()} if isinstance(value, dict) else {key: value})
    return found


@settings(suppress_health_check=[HealthCheck.filter_too_much], deadline=None)
@given(valid_blocks, valid_blocks)
def test_a_value_that_no_warning_is_about_holds_exactly_as_written(fleet: Any, agent: Any) -> None:
    text = json.dumps(
        {"tools": {"loopDetection": fleet}, "agents": {"list": [{"id": "a", "tools": {"loopDetection": agent}}]}}
    )
    reading = read_policy_file("policy.json", text=text)
    document = reading.accepted()
    assume(not any("is used" in warning.message for warning in reading.warnings))
    for agent_id, written in ((None, flat(fleet)), ("a", {**flat(fleet), **flat(agent)})):
        policy = document.resolve(agent_id)
        for setting in SETTINGS:
            assert getattr(policy, setting.attribute) == written.get(setting.path, setting.default)


@settings(deadline=None)
@given(valid_blocks)
def test_without_warnings_every_count_can_reach_every_threshold(fleet: Any) -> None:
    reading = read_policy_file("policy.json", text=json.dumps({"tools": {"loopDetection": fleet}}))
    policy = reading.accepted().resolve(None)
    kept = policy.history_size
    reachable = policy.unknown_tool_threshold <= kept and policy.global_circuit_breaker_threshold <= kept
    if policy.generic_repeat or policy.known_poll_no_progress:
        reachable = reachable and policy.critical_threshold <= kept
    if policy.ping_pong:
        reachable = reachable and policy.critical_threshold <= kept + 1
    assert reachable == (not any("out of reach" in warning.message for warning in reading.warnings))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values)
def test_a_json_text_is_read_as_the_json_module_reads_it(value: Any) -> None:
    read = read_json5(json.dumps(value))
    assert canonical(read.value) == canonical(value)
    assert read.impossible == []


@settings(deadline=None)
@given(st.text(alphabet="{}[]:,'\"\\/*0123x.eE+-ab\n \ufeff") | st.text())
def test_no_text_at_all_brings_a_traceback(text: str) -> None:
    reading = read_policy_file("policy.json", text=text)
    assert (reading.document is None) == bool(reading.errors)

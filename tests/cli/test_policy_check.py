from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .conftest import STRICT, Ran

RECOMMENDED = Path(__file__).parents[2] / "infra" / "policies" / "recommended.json5"


def setting(out: str, name: str) -> list[str]:
    (line,) = (line for line in out.splitlines() if f" {name} " in line)
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_the_recommended_policy_is_right_and_turns_the_detectors_on(run: Callable[..., Ran]) -> None:
    code, out, err = run("policy", "check", RECOMMENDED)

    assert (code, err) == (0, "")
    assert setting(out, "enabled") == ["enabled", "true", "global"]


def test_each_value_is_shown_with_its_origin(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "policy.json5"
    file.write_text(
        "{ tools: { loopDetection: { enabled: true, warningThreshold: 25 } },"
        " agents: { list: [{ id: 'a', tools: { loopDetection: { historySize: 40 } } }] } }"
    )

    code, out, err = run("policy", "check", file, "--agent", "a")

    assert code == 0
    assert setting(out, "warningThreshold") == ["warningThreshold", "25", "global"]
    assert setting(out, "historySize") == ["historySize", "40", "agent"]
    assert setting(out, "criticalThreshold") == ["criticalThreshold", "26", "clamped (20 by default)"]
    assert setting(out, "detectors.pingPong") == ["detectors.pingPong", "true", "default"]
    assert "policy digest" in out
    assert "warning: " in err


def test_the_limit_of_ignored_blocks_is_shown_with_its_origin(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "policy.json5"
    file.write_text("{ tools: { loopDetection: { enabled: true }, loopwarden: { abortAfterBlocks: 5 } } }")

    assert setting(run("policy", "check", file).out, "loopwarden.abortAfterBlocks")[1:] == ["5", "global"]
    assert setting(run("policy", "check", RECOMMENDED).out, "loopwarden.abortAfterBlocks")[1:] == ["unset", "default"]


def test_mistakes_are_told_with_file_line_and_path(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "policy.json5"
    file.write_text("{ tools: { loopDetection: {\n  warningTreshold: 5,\n  historySize: -1 } } }")

    code, out, err = run("policy", "check", file)

    assert (code, out) == (1, "")
    assert f"did you mean warningThreshold? ({file}, line 2)" in err
    assert f"tools.loopDetection.historySize: must be a positive integer, got -1 ({file}, line 3)" in err
    assert "2 mistakes" in err


def test_a_policy_may_come_from_standard_input(run: Callable[..., Ran]) -> None:
    code, out, _ = run("policy", "check", "-", stdin=STRICT.encode())

    assert code == 0
    assert setting(out, "criticalThreshold") == ["criticalThreshold", "8", "global"]


def test_an_agent_without_settings_of_its_own_is_said(run: Callable[..., Ran]) -> None:
    code, _, err = run("policy", "check", "-", "--agent", "nobody", stdin=STRICT.encode())

    assert code == 0
    assert "agent 'nobody' has no settings of its own in this file: the fleet's hold" in err


def test_it_says_when_the_detectors_are_off_and_how_to_turn_them_on(run: Callable[..., Ran]) -> None:
    unset = run("policy", "check", "-", stdin=b"{ tools: { loopDetection: {} } }")
    off = run("policy", "check", "-", stdin=b"{ tools: { loopDetection: { enabled: false } } }")

    assert "the detectors are off: only the post-compaction guard runs" in unset.err
    assert "the detectors are off: nothing is watched" in off.err
    assert "enabled: true" in unset.err


def test_a_file_that_is_not_there_is_exit_code_2(run: Callable[..., Ran]) -> None:
    assert run("policy", "check", "nowhere.json5") == (2, "", "loopwarden: nowhere.json5: there is no such file\n")


def test_bytes_that_are_no_text_are_a_mistake(run: Callable[..., Ran]) -> None:
    code, _, err = run("policy", "check", "-", stdin=b"{\xff}")

    assert code == 2
    assert "must be UTF-8 text, got byte 0xff" in err

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwarden.recordings import recordings

from .conftest import Ran

VECTORS = Path(__file__).parents[1] / "vectors"


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def parsed(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def calls(run_id: str, count: int, **fields: Any) -> list[dict[str, Any]]:
    made = {"run_id": run_id, "tool": "read", "args": {}, **fields}
    return [
        event
        for number in range(count)
        for event in (
            {"type": "tool_call.started", "call_id": str(number), **made},
            {"type": "tool_call.finished", "call_id": str(number), "result": "same", **made},
        )
    ]


def test_verdicts_are_shown_as_rows_with_a_summary(run: Callable[..., Ran], strict: Path) -> None:
    code, out, err = run("judge", recordings()["openclaw-same-call-exec"], "--policy", strict)
    header, *rows, summary = out.splitlines()

    assert (code, err) == (0, "")
    assert header.split() == ["ACTION", "PHASE", "COUNT", "DETECTOR", "TOOL", "RUN", "EVENT"]
    assert rows[0].split()[:-1] == ["warn", "attempt", "4", "generic_repeat", "exec", "same"]
    assert sum(row.startswith("block   order") for row in rows) == 1
    assert summary == "1 run, 40 calls (32 refused by the runner): 4 warned about, 32 blocked; 0 runs aborted"


def test_a_persons_decisions_are_shown_and_counted(run: Callable[..., Ran], strict: Path, tmp_path: Path) -> None:
    decision = {"type": "operator.override", "run_id": "r", "by": "ada", "why": "test"}
    log = [
        *calls("r", 8),
        {**decision, "action": "allow"},
        *calls("r", 8),
        {**decision, "action": "abort"},
        *calls("r", 1),
    ]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in log))

    _, out, _ = run("judge", file, "--policy", strict)
    *_, cleared, aborted, summary = out.splitlines()

    assert cleared.split()[:4] == ["clear", "order", "-", "operator_allow"]
    assert aborted.split()[:4] == ["abort", "attempt", "-", "operator_abort"]
    assert summary.endswith("1 run aborted")


def test_json_prints_verdicts_only(run: Callable[..., Ran], strict: Path) -> None:
    code, out, _ = run("judge", recordings()["openclaw-loop-across-compaction"], "--policy", strict, "--json")
    verdicts = parsed(out)

    assert code == 0
    assert [verdict["n"] for verdict in verdicts] == list(range(1, len(verdicts) + 1))
    assert verdicts[-1]["action"] == "abort"
    assert verdicts[-1]["reason"] == "compaction_loop_persisted"


def test_judging_twice_prints_the_same(run: Callable[..., Ran], strict: Path) -> None:
    arguments = ("judge", recordings()["openclaw-ping-pong"], "--policy", strict, "--json")

    assert run(*arguments) == run(*arguments)


def test_decisions_are_printed_in_event_order_and_not_de_duplicated(run: Callable[..., Ran], strict: Path) -> None:
    code, out, _ = run("judge", recordings()["openclaw-edit-and-check"], "--policy", strict, "--decisions")
    decisions = parsed(out)

    assert code == 0
    assert list(decisions[0]) == ["event_id", "run_id", "action", "detector", "count"]
    assert [decision["count"] for decision in decisions] == [4, 5, 6, 7, 8, 9, 10, 11]
    assert {decision["action"] for decision in decisions} == {"warn"}


def vector_cases() -> Iterator[Any]:
    for name in ("sequences", "assembly"):
        for line in (VECTORS / f"{name}.jsonl").read_bytes().splitlines():
            case = json.loads(line)
            yield pytest.param(case, id=f"{name}: {case['name']}")


@pytest.mark.parametrize("case", [*vector_cases()])
def test_decisions_are_those_of_the_vectors(case: dict[str, Any], run: Callable[..., Ran]) -> None:
    policy = {"tools": {"loopDetection": case["config"]}}
    first = {"type": "policy.applied", "number": 0, "digest": "-", "policy": policy, "event_id": "policy", "ts": 0}
    events = [
        {"schema": 1, "event_id": f"{case['name']}/{at}", "ts": at, **event} for at, event in enumerate(case["events"])
    ]
    expected = [
        {
            "event_id": events[decision["at"]]["event_id"],
            "run_id": events[decision["at"]]["run_id"],
            **{field: decision[field] for field in ("action", "detector", "count")},
        }
        for decision in case["expect"]
    ]

    _, out, _ = run("judge", "-", "--decisions", stdin=lines([first, *events]))

    assert parsed(out) == expected


def test_a_compressed_stream_on_standard_input_is_read(run: Callable[..., Ran], strict: Path) -> None:
    events = lines(calls("r", 5))
    plain = run("judge", "-", "--policy", strict, "--json", stdin=events)

    assert run("judge", "-", "--policy", strict, "--json", stdin=gzip.compress(events)) == plain
    assert len(parsed(plain.out)) == 1


def test_the_policy_option_holds_until_a_policy_is_applied(run: Callable[..., Ran], strict: Path) -> None:
    applied = {"type": "policy.applied", "number": 1, "digest": "-", "policy": {}}
    events = lines([*calls("before", 5), applied, *calls("after", 5)])

    _, out, err = run("judge", "-", "--policy", strict, "--decisions", stdin=events)

    assert [decision["run_id"] for decision in parsed(out)] == ["before"]
    assert "the detectors were off for 1 of 2 runs" in err


def test_the_agent_option_is_for_events_that_name_none(run: Callable[..., Ran], tmp_path: Path) -> None:
    policy = tmp_path / "policy.json5"
    block = "tools: { loopDetection: { enabled: true, warningThreshold: 2 } }"
    policy.write_text(f"{{ agents: {{ list: [{{ id: 'worker', {block} }}] }} }}")
    events = lines([*calls("mine", 3), *calls("theirs", 3, agent_id="other")])

    _, out, _ = run("judge", "-", "--policy", policy, "--agent", "worker", "--json", stdin=events)

    assert [(verdict["run_id"], verdict["agent_id"]) for verdict in parsed(out)] == [("mine", "worker")]


def test_it_says_when_the_detectors_are_off_and_how_to_turn_them_on(run: Callable[..., Ran]) -> None:
    for option in ((), ("--json",), ("--decisions",)):
        code, _, err = run("judge", "-", *option, stdin=lines(calls("r", 40)))
        assert code == 0
        assert "the detectors were off: only the post-compaction guard watched" in err
        assert "enabled: true" in err


def test_it_says_nothing_of_the_kind_when_they_are_on(run: Callable[..., Ran], strict: Path) -> None:
    assert run("judge", "-", "--policy", strict, stdin=lines(calls("r", 2))) == (
        0,
        "no verdicts; 1 run, 2 calls: 0 warned about, 0 blocked; 0 runs aborted\n",
        "",
    )


def test_bad_lines_are_told_and_the_rest_is_judged(run: Callable[..., Ran], strict: Path) -> None:
    events = lines(calls("r", 5)) + b'{"type":"tool_call.started"}\n{"type":"tool_call.started","run_id":"r","to'

    code, out, err = run("judge", "-", "--policy", strict, "--decisions", stdin=events)

    assert code == 1
    assert len(parsed(out)) == 1
    assert "standard input, line 11: invalid_event: run_id" in err
    assert "standard input, line 12: the file ends in the middle of this line" in err
    assert "standard input: 2 bad lines" in err


def test_a_policy_that_the_file_does_not_hold_is_told_with_its_line(run: Callable[..., Ran]) -> None:
    applied = {"type": "policy.applied", "number": 7, "digest": "-"}

    code, _, err = run("judge", "-", stdin=lines([applied, *calls("r", 1)]))

    assert code == 1
    assert "standard input, line 1: unknown_policy: policy: the document of policy 7 must be inline" in err


def test_many_bad_lines_are_counted_and_verbose_shows_them(run: Callable[..., Ran]) -> None:
    code, _, err = run("judge", "-", stdin=b"nonsense\n" * 50)
    assert code == 1
    assert err.count("line ") == 20
    assert "50 bad lines" in err

    assert run("judge", "-", "--verbose", stdin=b"nonsense\n" * 50).err.count("line ") == 50


def test_verbose_tells_when_the_guard_is_armed(run: Callable[..., Ran]) -> None:
    recording = recordings()["openclaw-loop-across-compaction"]

    assert "post-compaction guard armed for 3 attempts" in run("judge", recording, "--verbose").err
    assert "armed" not in run("judge", recording).err


def test_control_characters_of_others_do_not_reach_the_terminal(run: Callable[..., Ran], strict: Path) -> None:
    events = lines([*calls("r", 5, tool="t\x1b"), *calls("r\x1b[2J", 1), {"type": "x\x1b[2J", "run_id": "r"}])

    _, out, err = run("judge", "-", "--policy", strict, stdin=events)

    assert "\x1b" not in out + err
    assert "t\\x1b" in out
    assert "r\\x1b[2J" in err and "x\\x1b[2J" in err


def test_a_policy_file_with_mistakes_is_refused_with_its_lines(run: Callable[..., Ran], tmp_path: Path) -> None:
    policy = tmp_path / "policy.json5"
    policy.write_text("{ tools: { loopDetection: {\n warningThreshold: 'ten' } } }")

    code, out, err = run("judge", "-", "--policy", policy, stdin=lines(calls("r", 1)))

    assert (code, out) == (2, "")
    assert "tools.loopDetection.warningThreshold: must be a positive integer" in err
    assert "line 2" in err


def test_json_and_decisions_exclude_each_other(run: Callable[..., Ran]) -> None:
    code, out, err = run("judge", "-", "--json", "--decisions")

    assert (code, out) == (2, "")
    assert "--decisions" in err


def test_another_agents_session_is_refused_by_name(run: Callable[..., Ran]) -> None:
    code, _, err = run("judge", "-", stdin=b'{"type":"session_meta","payload":{}}\n')

    assert code == 2
    assert "a session of Codex, which a later version will read" in err

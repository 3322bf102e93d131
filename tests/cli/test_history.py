"""How a run's history is put together from records, without a broker."""

from __future__ import annotations

from typing import Any

from loopwarden.cli.run_history import Happened, put_together
from loopwarden.client import Record
from loopwarden.judge import RunState, judge
from loopwarden.report.following_through import Followed
from loopwarden_schemas.codec import encode_event, encode_verdict, event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected

POLICY = PolicyDocument.from_value(
    {
        "tools": {
            "loopDetection": {
                "enabled": True,
                "warningThreshold": 2,
                "criticalThreshold": 3,
                "unknownToolThreshold": 2,
                "detectors": {"pingPong": False},
            }
        }
    }
)


class Log:
    """Records of one run, and those of the verdicts that a worker would publish on them."""

    def __init__(self) -> None:
        self.events: list[Record] = []
        self.verdicts: list[Record] = []
        self._state: RunState | None = None

    def tell(self, kind: str, **fields: Any) -> list[str]:
        """Append an event; return the ids of its verdicts."""
        offset = len(self.events)
        value = {"type": kind, "event_id": f"e{offset}", "run_id": "r", "ts": offset, **fields}
        self.events.append(Record(0, offset, offset, b"r", encode_event(value), []))
        event = event_from_value(value)
        assert not isinstance(event, (Rejected, PolicyApplied))
        judged = judge(self._state, event, POLICY)
        self._state = judged.state
        headers = [("cause-offset", b"%d" % offset), ("cause-append-time", b"%d" % offset)]
        self.verdicts += [
            Record(0, len(self.verdicts) + at, 0, b"r", encode_verdict(verdict), headers)
            for at, verdict in enumerate(judged.verdicts)
        ]
        return [verdict.verdict_id for verdict in judged.verdicts]

    def call(self, call_id: str, tool: str = "read", **outcome: Any) -> list[str]:
        """Make a call; return the ids of all its verdicts."""
        call = {"call_id": call_id, "tool": tool, "args": {"path": "x"}}
        made = self.tell("tool_call.started", **call)
        return made + self.tell("tool_call.finished", **call, **(outcome or {"result": "same"}))

    def loop(self) -> str:
        """Make the same call until it is blocked; return the id of the order."""
        return [verdict for number in range(3) for verdict in self.call(f"loop-{number}")][-1]

    def refuse(self, call_id: str, **fields: Any) -> None:
        self.tell("tool_call.blocked", **{"call_id": call_id, "tool": "read", "args": {"path": "x"}, **fields})

    def history(self) -> list[Happened]:
        return put_together("r", self.events, self.verdicts)

    def followed(self) -> list[tuple[str, str]]:
        """Return reason and fate of every verdict."""
        entries = (entry.what for entry in self.history())
        return [(what.verdict.reason, what.in_words()) for what in entries if isinstance(what, Followed)]


def test_each_verdict_stands_below_the_event_that_caused_it() -> None:
    log = Log()
    log.loop()
    log.refuse("late")
    assert [
        entry.what.verdict.action if isinstance(entry.what, Followed) else entry.offset for entry in log.history()
    ] == [0, 1, 2, 3, 4, "warn", 5, "block", 6]


def test_what_was_written_twice_is_shown_once() -> None:
    log = Log()
    log.loop()
    log.events += log.events
    log.verdicts += log.verdicts
    assert len(log.history()) == 8
    assert log.followed()[-1] == ("generic_repeat", "not tried")


def test_a_verdict_whose_event_is_gone_is_shown_in_its_place() -> None:
    log = Log()
    log.loop()
    log.events = log.events[-1:]
    assert [type(entry.what).__name__ for entry in log.history()] == ["Followed", "ToolCallFinished", "Followed"]


def test_a_refused_call_obeys_the_verdict_it_names_or_else_the_order_that_covers_it() -> None:
    log = Log()
    order = log.loop()
    log.refuse("a", verdict_id=order)
    log.refuse("b")
    log.refuse("c", args={"path": "another"})
    assert log.followed()[-1] == ("generic_repeat", "obeyed 2x")


def test_a_call_made_all_the_same_disobeys_its_order_and_the_block_of_its_own() -> None:
    log = Log()
    log.loop()
    log.call("a")
    assert [fate for reason, fate in log.followed() if fate.startswith("disobeyed")] == ["disobeyed 1x"] * 2


def test_a_call_that_was_announced_and_then_refused_is_obeyed() -> None:
    log = Log()
    log.loop()
    [blocked] = log.tell("tool_call.started", call_id="a", tool="read", args={"path": "x"})
    log.refuse("a", verdict_id=blocked)
    assert log.followed()[1:] == [("generic_repeat", "obeyed 1x")] * 2


def test_a_refused_call_of_a_tool_that_does_not_exist_obeys_the_order_on_the_tool() -> None:
    log = Log()
    for number in range(2):
        log.call(f"c{number}", "nope", error="unknown tool: nope")
    log.refuse("a", tool="nope", args={"path": "another"})
    assert log.followed()[-1] == ("unknown_tool_repeat", "obeyed 1x")


def test_a_warning_is_shown_where_an_event_names_it() -> None:
    log = Log()
    [warning] = [verdict for number in range(2) for verdict in log.call(f"c{number}")] + log.tell(
        "tool_call.started", call_id="c2", tool="read", args={"path": "x"}
    )
    assert log.followed() == [("generic_repeat", "not known to be shown")]
    log.tell("tool_call.finished", call_id="c2", tool="read", args={"path": "x"}, verdict_id=warning)
    assert log.followed()[0] == ("generic_repeat", "shown")


def test_calls_after_an_abort_disobey_it_until_the_run_may_go_on() -> None:
    log = Log()
    log.tell("operator.override", action="abort")
    assert log.followed() == [("operator_abort", "obeyed")]
    log.call("a")
    log.call("b")
    log.tell("operator.override", action="release")
    log.call("c")
    assert log.followed() == [("operator_abort", "disobeyed: 2 calls after it"), ("operator_release", "")]


def test_other_runs_in_a_record_are_none_of_this_ones_history() -> None:
    log = Log()
    other = {"type": "run.finished", "event_id": "x", "run_id": "other", "ts": 0}
    log.events.append(Record(0, 0, 0, b"r", encode_event(other), []))
    assert log.history() == []

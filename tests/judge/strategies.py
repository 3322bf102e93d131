"""Logs of one run as Hypothesis draws them: tiny alphabets, so that everything meets everything.

A log is made of moves: loops, alternations and bursts, which reach the thresholds, and single events of every kind,
which disturb them (lost, late, lone, void, blocked, repeated and missing ids, changed arguments, flags that contradict
one another, ends, compactions, idle hours and redeliveries).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from loopwarden_schemas.digests import digest

HOUR = 3_600_000
WireEvent = dict[str, Any]

TOOLS = ("read", "Exec", "bash", "process", "command_status", "message", "telegram")
ARGS: tuple[Any, ...] = ({"a": 1}, {"a": 2}, {"action": "poll"}, {"action": "send", "to": "x"}, None)
OPAQUE_HASHES = ("opaque", "0" * 32, "A" * 32)
OUTCOMES: tuple[WireEvent, ...] = (
    {"result": "x"},
    {"result": "y"},
    {"result": None},
    {"result": {"details": {"status": "running", "tail": "x", "aggregated": "y"}, "content": []}},
    {"result": {"details": {"ok": True, "messageId": "1"}, "content": [{"type": "text", "text": "x"}]}},
    {"result": {"details": {"status": "blocked", "deniedReason": "tool-loop"}}},
    {"error": "unknown tool: nope"},
    {"error": {"message": "Tool 'Nada' not found"}},
    {"error": None},
    {"error": "x", "result": "y"},
    {"result_hash": digest(["value", "x"])},
    {"result_hash": "opaque"},
    {"result_hash": digest(["error", "unknown tool: nope"]), "unknown_tool": "NOPE"},
    {"unknown_tool": "nope"},
    {},
)
STEPS = (HOUR, HOUR + 1, 5 * HOUR, 24 * HOUR, 24 * HOUR + 1, -7)


def _positive(*values: int) -> st.SearchStrategy[int]:
    return st.sampled_from(values)


def loop_detection(sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 12, 30)) -> st.SearchStrategy[WireEvent]:
    """A `loopDetection` block, nearly always enabled, with thresholds that are soon reached."""
    return st.fixed_dictionaries(
        {"enabled": st.sampled_from((True, True, True, True, True, False))},
        optional={
            "historySize": _positive(*sizes),
            "warningThreshold": _positive(1, 2, 3, 4, 11),
            "criticalThreshold": _positive(1, 2, 3, 4, 5, 12),
            "globalCircuitBreakerThreshold": _positive(3, 4, 5, 6, 30),
            "unknownToolThreshold": _positive(1, 2, 3, 4),
            "detectors": st.fixed_dictionaries(
                {}, optional={name: st.booleans() for name in ("genericRepeat", "knownPollNoProgress", "pingPong")}
            ),
            "postCompactionGuard": st.fixed_dictionaries({"windowSize": _positive(1, 2, 3, 4)}),
        },
    )


def fleets(sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 12, 30)) -> st.SearchStrategy[WireEvent]:
    """A policy document with an overlay for agent A; some end runs that ignore their blocks."""
    tools = st.builds(
        lambda block, limit: {"loopDetection": block, **({"loopwarden": {"abortAfterBlocks": limit}} if limit else {})},
        loop_detection(sizes),
        _positive(0, 0, 1, 2, 3, 5),
    )
    return st.builds(lambda fleet, own: {"tools": fleet, "agents": {"list": [{"id": "A", "tools": own}]}}, tools, tools)


def _overrides() -> st.SearchStrategy[WireEvent]:
    """What a person may decide; `until` is moved to the time of the event by the log."""
    return st.fixed_dictionaries(
        {
            "type": st.just("operator.override"),
            "action": st.sampled_from(("allow", "allow", "allow", "release", "abort")),
            "by": st.just("ada"),
        },
        optional={"tool": st.sampled_from(TOOLS), "until": st.integers(-2, 40)},
    )


@st.composite
def _called(draw: st.DrawFn, consistent: bool) -> WireEvent:
    """The tool and the arguments of a call, in one of their forms."""
    tool, args = draw(st.sampled_from(TOOLS[:4] if consistent else TOOLS)), draw(st.sampled_from(ARGS))
    called: WireEvent = {"tool": tool, "args": args}
    if consistent:
        return called
    form = draw(st.sampled_from(("args", "args", "args", "hash", "hash", "both", "opaque", "neither")))
    if form != "args" and form != "both":
        del called["args"]
    if form in ("hash", "both"):
        called["args_hash"] = digest(draw(st.sampled_from(ARGS)))
    if form == "opaque":
        called["args_hash"] = draw(st.sampled_from(OPAQUE_HASHES))
    flag = draw(st.sampled_from((None, None, None, True, False)))
    if flag is not None:
        called["known_poll"] = flag
    return called


def _call_ids() -> st.SearchStrategy[WireEvent]:
    few, many = ["c0", "c1", "c2", "x" * 65], [f"c{i}" for i in range(40)]
    return st.one_of(*(st.sampled_from([*({"call_id": call_id} for call_id in ids), {}]) for ids in (few, many)))


@st.composite
def _single(draw: st.DrawFn) -> list[WireEvent]:
    kinds = (
        *("started", "started", "finished", "finished", "finished", "blocked", "blocked"),
        *("compaction", "compaction", "override", "override", "other"),
    )
    kind = draw(st.sampled_from(kinds))
    if kind in ("started", "finished", "blocked"):
        event = {"type": f"tool_call.{kind}", **draw(_called(consistent=False)), **draw(_call_ids())}
        if kind == "finished":
            event.update(draw(st.sampled_from(OUTCOMES)))
        event.update(draw(st.sampled_from(({}, {}, {"verdict_id": "v"}))))
    elif kind == "override":
        event = draw(_overrides())
    elif kind == "compaction":
        event = {"type": "compaction", **draw(st.sampled_from(({"succeeded": True}, {"succeeded": False}, {})))}
        event.update(draw(st.sampled_from(({}, {"trigger": "in_attempt"}, {"trigger": "manual"}, {"trigger": "new"}))))
    else:
        event = draw(
            st.sampled_from(
                (
                    {"type": "run.finished"},
                    {"type": "run.started"},
                    {"type": "run.started", "policy": {"criticalThreshold": 2, "historySize": "bad"}},
                    {"type": "run.started", "policy": "bad"},
                )
            )
        )
    return [event]


@st.composite
def _pattern(draw: st.DrawFn) -> list[WireEvent]:
    """One to three calls in turn, again and again, each with its own outcome; perhaps all started before any ends."""
    calls = draw(st.lists(_called(consistent=True), min_size=1, max_size=3))
    outcomes = [draw(st.sampled_from(OUTCOMES)) for _ in calls]
    with_ids, in_parallel = draw(st.booleans()), draw(st.booleans())
    first_id = draw(st.integers(0, 30))
    started, finished = [], []
    for turn in range(draw(st.integers(2, 7))):
        for place, (call, outcome) in enumerate(zip(calls, outcomes, strict=True)):
            call_id = {"call_id": f"c{first_id + turn * len(calls) + place}"} if with_ids else {}
            started.append({"type": "tool_call.started", **call, **call_id})
            finished.append({"type": "tool_call.finished", **call, **call_id, **outcome})
    if in_parallel:
        return [*started, *finished]
    return [event for pair in zip(started, finished, strict=True) for event in pair]


@st.composite
def logs(draw: st.DrawFn, max_moves: int = 9, disturbed: bool = True) -> list[WireEvent]:
    """The wire events of run `r`, in the order of the log; `ts` is the append time."""
    moves = draw(st.lists(st.one_of(_pattern(), _pattern(), _single(), _single()), min_size=1, max_size=max_moves))
    events: list[WireEvent] = []
    now = 1000
    for event in (event for move in moves for event in move):
        if disturbed and draw(st.integers(0, 19)) == 0:
            now += draw(st.sampled_from(STEPS))
            redelivers = draw(st.booleans())
            if redelivers and events:
                events.append({**events[-1 - draw(st.integers(0, len(events) - 1))], "ts": now})
        now += 1
        # Short ids: they are the hardest to tell apart by a hash.
        common: WireEvent = {"event_id": f"e{len(events)}", "ts": now, "run_id": "r"}
        if disturbed:
            common.update(draw(st.sampled_from(({}, {}, {}, {"agent_id": "A"}, {"agent_id": "B", "session_id": "s"}))))
        if "until" in event:
            common["until"] = max(now + event["until"], 0)
        events.append({**event, **common})
    return events


def histories(max_moves: int = 9) -> st.SearchStrategy[list[WireEvent]]:
    """Orderly logs: payloads only, no redeliveries, no idle hours."""
    return logs(max_moves, disturbed=False)

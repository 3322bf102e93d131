"""Logs of one run as Hypothesis draws them: tiny alphabets, so that everything meets everything.

A log is made of moves: loops, alternations and bursts, which reach the thresholds, and single events of every kind,
which disturb them (lost, late, lone, void, blocked, repeated and missing ids, changed arguments, flags that contradict
one another, ends, compactions, idle hours and redeliveries).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from loopwarden_schemas.digests import digest

HOUR = 3_600_000
WireEvent = dict[str, Any]

TOOLS = ("read", "Exec", "bash", "process", "command_status", "message", "telegram")
ARGS: tuple[Any, ...] = ({"a": 1}, {"a": 2}, {"action": "poll"}, {"action": "send", "to": "x"}, None)
OPAQUE_HASHES = ("opaque", "0" * 32, "A" * 32)
CHANGING = {"result": "another one each time"}
UNKNOWN_TOOL = {"error": "unknown tool: nope"}
OUTCOMES: tuple[WireEvent, ...] = (
    CHANGING,
    UNKNOWN_TOOL,
    {"result": "x"},
    {"result": "y"},
    {"result": None},
    {"result": {"details": {"status": "running", "tail": "x", "aggregated": "y"}, "content": []}},
    {"result": {"details": {"ok": True, "messageId": "1"}, "content": [{"type": "text", "text": "x"}]}},
    {"result": {"details": {"status": "blocked", "deniedReason": "tool-loop"}}},
    {"error": {"message": "Tool 'Nada' not found"}},
    {"error": None},
    {"error": "x", "result": "y"},
    {"result_hash": digest(["value", "x"])},
    {"result_hash": "opaque"},
    {"result_hash": digest(["error", "unknown tool: nope"]), "unknown_tool": "NOPE"},
    {"unknown_tool": "nope"},
    {},
)
SIZES = (1, 2, 3, 4, 5, 8, 12, 30)
STEPS = (0, 0, 1, HOUR - 1, HOUR, HOUR + 1, 24 * HOUR - 1, 24 * HOUR, 24 * HOUR + 1, -7)


def _positive(*values: int) -> st.SearchStrategy[int]:
    return st.sampled_from(values)


def loop_detection(sizes: tuple[int, ...] = SIZES) -> st.SearchStrategy[WireEvent]:
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


def fleets(sizes: tuple[int, ...] = SIZES) -> st.SearchStrategy[WireEvent]:
    """A policy document with an overlay for agent A."""
    return st.builds(
        lambda fleet, agent: {
            "tools": {"loopDetection": fleet},
            "agents": {"list": [{"id": "A", "tools": {"loopDetection": agent}}]},
        },
        loop_detection(sizes),
        loop_detection(sizes),
    )


class World(NamedTuple):
    """The few things that one log is made of, so that its calls meet again and again."""

    tools: list[str]
    args: list[Any]
    outcomes: list[WireEvent]
    call_ids: list[WireEvent]


def _some(among: Sequence[Any], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(among), min_size=1, max_size=most)


WORLDS = st.builds(
    World,
    tools=_some(TOOLS, 3),
    args=_some(ARGS, 3),
    outcomes=st.one_of(
        _some(OUTCOMES, 2),
        _some(OUTCOMES, 5),
        st.sampled_from(
            ([{"result": "x"}], [{"result": "x"}, CHANGING], [UNKNOWN_TOOL], [UNKNOWN_TOOL, {"result": "x"}])
        ),
    ),
    call_ids=st.sampled_from((1, 3, 40)).map(lambda most: [{}, *({"call_id": f"c{i}"} for i in range(most))]),
)


@st.composite
def _called(draw: st.DrawFn, world: World) -> WireEvent:
    """The tool and the arguments of a call, in one of their forms."""
    called: WireEvent = {"tool": draw(st.sampled_from(world.tools)), "args": draw(st.sampled_from(world.args))}
    form = draw(st.sampled_from(("args", "args", "args", "hash", "hash", "both", "opaque", "neither")))
    if form != "args" and form != "both":
        del called["args"]
    if form in ("hash", "both"):
        called["args_hash"] = digest(draw(st.sampled_from(world.args)))
    if form == "opaque":
        called["args_hash"] = draw(st.sampled_from(OPAQUE_HASHES))
    flag = draw(st.sampled_from((None, None, None, True, False)))
    if flag is not None:
        called["known_poll"] = flag
    return called


@st.composite
def _single(draw: st.DrawFn, world: World) -> list[WireEvent]:
    kinds = ("started", "started", "finished", "finished", "finished", "blocked", "compaction", "compaction", "other")
    kind = draw(st.sampled_from(kinds))
    if kind in ("started", "finished", "blocked"):
        call_id = draw(st.sampled_from(world.call_ids))
        event = {"type": f"tool_call.{kind}", **draw(_called(world)), **call_id}
        if kind == "finished":
            event.update(draw(st.sampled_from(world.outcomes)))
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
                    {"type": "operator.override", "action": "release"},
                )
            )
        )
    return [event]


@st.composite
def _pattern(draw: st.DrawFn, world: World) -> list[WireEvent]:
    """One to three calls in turn, again and again, each with its own outcome; perhaps all started before any ends."""
    call = st.fixed_dictionaries({"tool": st.sampled_from(world.tools), "args": st.sampled_from(world.args)})
    calls = draw(st.lists(st.tuples(call, st.sampled_from(world.outcomes)), min_size=1, max_size=3))
    with_ids, in_parallel = draw(st.booleans()), draw(st.booleans())
    first_id = draw(st.integers(0, 30))
    started, finished = [], []
    for number, (called, outcome) in enumerate(calls * draw(st.integers(2, 6))):
        call_id = {"call_id": f"c{first_id + number}"} if with_ids else {}
        started.append({"type": "tool_call.started", **called, **call_id})
        finished.append({"type": "tool_call.finished", **called, **call_id, **outcome})
    if in_parallel:
        return [*started, *finished]
    return [event for pair in zip(started, finished, strict=True) for event in pair]


@st.composite
def logs(draw: st.DrawFn, max_moves: int = 16, disturbed: bool = True) -> list[WireEvent]:
    """The wire events of run `r`, in the order of the log; `ts` is the append time."""
    world = draw(WORLDS)
    move = st.one_of(_pattern(world), _single(world), _single(world), _single(world))
    moves = draw(st.lists(move, min_size=min(5, max_moves), max_size=max_moves))
    events: list[WireEvent] = []
    now = 1000
    for event in (event for move in moves for event in move):
        if disturbed and draw(st.integers(0, 29)) == 0:
            now += draw(st.sampled_from(STEPS))
            redelivers = draw(st.booleans())
            if redelivers and events:
                events.append({**events[-1 - draw(st.integers(0, len(events) - 1))], "ts": now})
        now += 1
        # Short ids: they are the hardest to tell apart by a hash. Now and then one that is kept as its hash.
        event_id = f"e{len(events)}" if len(events) % 16 else f"{len(events):070}"
        common: WireEvent = {"event_id": event_id, "ts": now, "run_id": "r"}
        if disturbed and len(events) < 3:
            common.update(draw(st.sampled_from(({}, {"agent_id": "A"}, {"agent_id": "B", "session_id": "s" * 65}))))
        if event.get("result") == CHANGING["result"]:
            common["result"] = len(events)
        events.append({**event, **common})
    return events


def histories(max_moves: int = 16) -> st.SearchStrategy[list[WireEvent]]:
    """Orderly logs: payloads only, no redeliveries, no idle hours."""
    return logs(max_moves, disturbed=False)

"""Normalised trajectories: one finished run a line.

{"source", "run", "task", "outcome", "exit", "events": [{"tool", "args", "result", "error"}]}

They carry no times, so each event's order in its run stands for its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loopwarden.importers.ids import event_id, run_prefix
from loopwarden.importers.items import BadLine, Item, WireEvent
from loopwarden.importers.rows import Row, Rows
from loopwarden_schemas.events import MAX_NAME_BYTES

_NOTHING: Final = object()


def recognises(value: Any) -> bool:
    """Whether a line's value is a trajectory."""
    return isinstance(value, dict) and "run" in value and "events" in value


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each run. A run with a mistake in it is left out whole: a gap would change its counts."""
    seen: dict[str, int] = {}
    for row in rows:
        if not isinstance(row, Row):
            yield row
            continue
        mistake = _mistake(row.value)
        if mistake is None:
            first = seen.setdefault(row.value["run"], row.line)
            if first != row.line:
                mistake = f"run: must be unique in the file, but line {first} has {row.value['run']!r} too"
        if mistake is None:
            for event in _events(row.value):
                yield WireEvent(row.line, event)
        else:
            yield BadLine(row.line, mistake)


def _mistake(run: Any) -> str | None:
    if not recognises(run):
        return "a trajectory must be an object with `run` and `events`"
    name = run["run"]
    if not isinstance(name, str) or not name:
        return f"run: must be text that is not empty, got {name!r}"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"run: must be at most {MAX_NAME_BYTES} bytes, got {len(name.encode())}"
    if not isinstance(run["events"], list):
        return f"events: must be a list, got {type(run['events']).__name__}"
    for index, call in enumerate(run["events"]):
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            return f"events[{index}].tool: must be text, the tool's name"
        if not isinstance(call.get("error", False), bool):
            return f"events[{index}].error: must be true or false, got {call['error']!r:.60}"
    return None


def _events(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    run_id = run["run"]
    prefix = run_prefix(run_id)
    ts = 0

    def event(kind: str, *place: str, **fields: Any) -> dict[str, Any]:
        nonlocal ts
        common = {"schema": 1, "type": kind, "event_id": event_id(prefix, *place), "run_id": run_id, "ts": ts}
        ts += 1
        return common | fields

    for index, call in enumerate(run["events"]):
        made = {"call_id": str(index), "tool": call["tool"], "args": call.get("args")}
        yield event("tool_call.started", f"{index}", "started", **made)
        outcome = call.get("result", _NOTHING)
        if call.get("error"):
            ended = {"error": None if outcome is _NOTHING else outcome}
        else:
            ended = {} if outcome is _NOTHING else {"result": outcome}
        yield event("tool_call.finished", f"{index}", "finished", **made, **ended)
    reason = ", ".join(str(run[key]) for key in ("exit", "outcome") if run.get(key) is not None)
    yield event("run.finished", "end", **({"reason": reason} if reason else {}))

"""The vectors of `tests/vectors` as cases to play, and the other form of their events: hashes instead of payloads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from loopwarden_schemas.digests import digest, error_text, is_known_poll, normalise_tool, outcome_array, unknown_tool_of

VECTORS = Path(__file__).parents[1] / "vectors"


@dataclass(frozen=True)
class Case:
    """One named case: events of one log, and what must come of them."""

    name: str
    policy: Mapping[str, Any]
    """The policy document in force."""
    events: list[dict[str, Any]]
    """Wire events, complete."""
    decisions: list[dict[str, Any]]
    orders: list[tuple[int, str, frozenset[tuple[str, str, str]]]]
    """(index of the event, run, the run's orders from there on), each order as (scope, tool, args_hash or "")."""
    warned: list[int] | None
    """The events whose warning is published, where the case says so."""


@cache
def cases(file: str) -> list[Case]:
    """Return the cases of one file of vectors."""
    orders = {line["name"]: line["orders"] for line in lines("orders.jsonl.gz")}
    return [_case(line, line.get("orders", orders.get(line["name"], []))) for line in lines(file)]


def lines(file: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of one file of vectors."""
    path = VECTORS / file
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as text:
        for line in text:
            yield json.loads(line)


def _case(line: dict[str, Any], orders: list[dict[str, Any]]) -> Case:
    name = line["name"]
    return Case(
        name,
        {"tools": {"loopDetection": line["config"]}},
        [{"event_id": f"{name}/{at}", "ts": at, **event} for at, event in enumerate(line["events"])],
        line["expect"],
        [(entry["at"], entry["run"], frozenset(map(_order, entry["blocked"]))) for entry in orders],
        line.get("warned"),
    )


def _order(blocked: dict[str, Any]) -> tuple[str, str, str]:
    if blocked["scope"] == "tool":
        return "tool", blocked["tool"], ""
    args = blocked["args"]
    known = isinstance(args, dict) and args.keys() == {"args_hash"}
    return "call", blocked["tool"], args["args_hash"] if known else digest(args)


def hashed(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event as a producer sends it that keeps payloads to itself: their hashes instead."""
    sent = {key: value for key, value in event.items() if key not in ("args", "result", "error")}
    if not event["type"].startswith("tool_call."):
        return sent
    tool, args = normalise_tool(event["tool"]), event.get("args")
    if "args" in event:
        sent["args_hash"] = digest(args)
        if is_known_poll(tool, args):
            sent["known_poll"] = True
    if "error" in event:
        text = error_text(event["error"])
        sent["result_hash"] = digest(["error", text])
        sent.pop("unknown_tool", None)
        unknown_tool = unknown_tool_of(text)
        if unknown_tool is not None:
            sent["unknown_tool"] = unknown_tool
    elif "result" in event:
        sent.pop("result_hash", None)
        sent.pop("unknown_tool", None)
        outcome = outcome_array(tool, args, event["result"])
        if outcome is not None:
            sent["result_hash"] = digest(outcome)
    return sent

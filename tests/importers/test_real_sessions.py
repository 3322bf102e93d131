"""What must be found in real session files: the table in `sessions/README.md`, where the files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from .reading import bad, events, left_out, read_file

TABLE = [
    # file, calls, compactions by trigger, results missing, errors
    ("claude-code-auto.jsonl.gz", 206, {"in_attempt": 3}, 0, 12),
    ("claude-code-manual.jsonl.gz", 61, {"manual": 1}, 0, 2),
    ("codex-polls.jsonl.gz", 136, {}, 1, 4),
    ("codex-compacted.jsonl.gz", 333, {"in_attempt": 2}, 0, 0),
    ("pi-compacted.jsonl.gz", 454, {"in_attempt": 2}, 6, 12),
    ("opencode.json.gz", 97, {}, 0, 0),
    ("openclaw-small.jsonl.gz", 2, {}, 0, 0),
]


@pytest.mark.parametrize(("name", "calls", "compactions", "missing", "errors"), TABLE, ids=[row[0] for row in TABLE])
def test_what_is_found_in_a_real_session_is_what_is_there(
    name: str,
    calls: int,
    compactions: dict[str, int],
    missing: int,
    errors: int,
    shared: Callable[[str], Path],
) -> None:
    items = read_file(shared(f"sessions/{name}"))
    found = events(items)
    kinds = Counter(event["type"] for event in found)

    assert bad(items) == []
    assert kinds["tool_call.started"] == calls
    assert kinds["tool_call.started"] - kinds["tool_call.finished"] == missing
    assert sum("error" in event for event in found) == errors
    assert Counter(event["trigger"] for event in found if event["type"] == "compaction") == compactions
    assert len({event["run_id"] for event in found}) == 1
    assert len({event["event_id"] for event in found}) == len(found)


@pytest.mark.parametrize("name", [row[0] for row in TABLE])
def test_the_times_of_a_real_session_are_kept_and_go_forward(name: str, shared: Callable[[str], Path]) -> None:
    times = [event["ts"] for event in events(read_file(shared(f"sessions/{name}")))]

    # A file may hold a call's result a moment before it holds another call that was asked for earlier.
    assert all(later > earlier - 60_000 for earlier, later in pairwise(times))
    assert times[0] > 1_700_000_000_000


def test_of_a_real_session_only_what_is_told_elsewhere_is_left_out(shared: Callable[[str], Path]) -> None:
    what = {item.what for name, *_ in TABLE for item in left_out(read_file(shared(f"sessions/{name}")))}

    assert what == {
        "a sub-agent's message as its parent saw it: its own file has it",
        "a tool's call from within another call: mcp_tool_call_end",
        "a tool's call from within another call: patch_apply_end",
    }


def test_without_what_codex_adds_to_them_polls_that_saw_nothing_new_have_equal_results(
    shared: Callable[[str], Path],
) -> None:
    finished = [event for event in events(read_file(shared("sessions/codex-polls.jsonl.gz"))) if "result" in event]
    streak = longest = 0
    for before, event in pairwise(finished):
        same = (before["tool"], before["args"], before["result"]) == (event["tool"], event["args"], event["result"])
        streak = streak + 1 if same else 0
        longest = max(longest, streak)

    assert longest >= 3

from __future__ import annotations

import subprocess
import sys

import pytest

from loopwarden.adapters import watched_runs
from loopwarden.adapters.watched_runs import WatchedRuns
from loopwarden.runner import CallBlocked, RunGuard

from .conftest import Watched


def test_so_many_runs_are_watched_and_the_one_not_heard_of_longest_is_left(
    unwatched: RunGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_runs, "MAX_RUNS", 2)
    runs = WatchedRuns(unwatched)
    first = runs.begin("a")
    runs.begin("b")
    assert runs.known("a") is first
    runs.begin("c")
    assert unwatched.stats.runs == 2
    assert runs.known("a") is first
    runs.end("a", "done")
    runs.end("a", "done")
    assert unwatched.stats.runs == 1


def test_a_run_that_is_taken_up_by_another_process_goes_on_with_its_orders(watched: Watched) -> None:
    first = WatchedRuns(watched.guard)
    begun = first.begin()
    for _ in range(4):
        begun.finish(begun.start("read", {"path": "/x"}), result="same")
    with RunGuard(gateway=watched.gateway, certain=60) as guard:
        taken_up = WatchedRuns(guard).known(begun.run.run_id)
        with pytest.raises(CallBlocked):
            taken_up.start("read", {"path": "/x"})


@pytest.mark.parametrize(
    ("adapter", "library", "extra"),
    [
        ("langchain", "langchain", "langchain"),
        ("fastmcp", "fastmcp", "mcp"),
        ("openai_agents", "agents", "openai-agents"),
    ],
)
def test_an_adapter_without_its_library_names_the_extra(adapter: str, library: str, extra: str) -> None:
    program = f"import sys; sys.modules['{library}'] = None; import loopwarden.adapters.{adapter}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(f"this adapter needs it: pip install 'loopwarden[{extra}]'")


def test_protobuf_without_its_library_names_the_extra_and_json_needs_none() -> None:
    program = """
import sys
sys.modules["google.protobuf.message"] = None
from loopwarden.adapters.otlp import spans_of
assert spans_of(b'{"resourceSpans": []}') == []
spans_of(b"x")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith("pip install 'loopwarden[otel]'")

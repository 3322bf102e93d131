"""A short, seeded part of `make chaos`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from .run import Plan, run

PLAN = Plan(
    seed=5,
    rate=400,
    faults=("kill_workers", "stop_workers", "zombies", "late_states", "kill_broker"),
    in_turn=True,
)


def test_after_kills_stops_a_zombie_and_a_broken_broker_all_is_as_if_nothing_had_happened(tmp_path: Path) -> None:
    result = run(PLAN, tmp_path, Console(stderr=True))
    assert result["kills"] > 1
    assert result["stops"] > 0
    assert result["pauses"] == 1
    assert result["broker_faults"] == 1
    assert result["verdicts"] > 1000

"""A short, seeded part of `make chaos`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAULTS = ("kill_workers", "stop_workers", "zombies", "late_states", "kill_broker")
HANG_S = 600


def test_after_kills_stops_a_zombie_and_a_lost_broker_all_is_as_if_nothing_had_happened() -> None:
    # A process of its own: kafka-python leaves sockets behind while a broker is away, which pytest would find.
    command = [sys.executable, "-m", "tests.chaos.run", "--in-turn", "--seed", "10817", "--rate", "300", "--nodes", "1"]
    command += [f"--fault={fault}" for fault in FAULTS]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout.splitlines()[-1])
    assert result["kills"] > 1
    assert result["stops"] > 0
    assert result["pauses"] == 1
    assert result["broker_faults"] == 1
    assert result["checks"] == len(FAULTS) + 2
    assert result["verdicts"] > 1000

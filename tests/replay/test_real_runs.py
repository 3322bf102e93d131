"""Real agent runs, where they are on this machine: exported, read back and judged to the same verdicts."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from loopwarden.importers import Checked, check, open_source
from loopwarden.importers.formats import read_events
from loopwarden.replay import Export

from .logs import Log, Record, applied, log_of
from .test_exported import compared, judged, read_back
from .test_replayed import STRICT, replayed

ROOT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("LOOPWARDEN_SHARED", ROOT.parent / "shared")) / "traces"
MOST_EVENTS = 4_000


def real_log(file: Path) -> Log:
    """Its runs at once, as a fleet's are: call by call."""
    runs: dict[str, list[bytes]] = {}
    with open_source(file) as source:
        for item in islice(check(read_events(source)), MOST_EVENTS):
            if isinstance(item, Checked):
                runs.setdefault(item.wire["run_id"], []).append(item.record)
    records = [Record(1000, None, applied(0, STRICT))]
    for at in range(max(map(len, runs.values()))):
        records += [
            Record(1000 + at, run_id.encode(), events[at]) for run_id, events in runs.items() if at < len(events)
        ]
    return log_of(records, {0: STRICT})


@pytest.mark.parametrize("file", sorted(TRACES.glob("*.jsonl.gz")), ids=lambda file: file.name.partition(".")[0])
def test_real_runs_are_judged_the_same_from_the_log_and_from_their_export(file: Path, tmp_path: Path) -> None:
    log = real_log(file)
    export = Export(log.part())
    log.fill(export)

    items = read_back(tmp_path / "runs.jsonl", export)

    published = sorted((each.verdict.run_id, each.verdict.verdict_id) for each in log.published)
    assert published
    assert sorted((verdict.run_id, verdict.verdict_id) for verdict in judged(items)) == published
    assert (replayed(log).differing, compared(items).differing) == ([], [])

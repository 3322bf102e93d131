"""Exported runs read back, as `judge` and `replay --from-file` read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from loopwarden.importers import Checked, Recorded, check, open_source
from loopwarden.importers.formats import read_events
from loopwarden.replay import Comparison, Export, Folder, LogPart, Replay, RunExported, export_lines, recorded_of
from loopwarden.replay.exported import event_json
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.structs import Rejected, Verdict

from .logs import Log, Published, Record, applied, log_of, partitions
from .test_replayed import LAX, STRICT, log, loop


def exported(log: Log, published: list[Published] | None = None, first: int = 0, **part: object) -> Export:
    export = Export(log.part(**part))
    log.fill(export, published, first)
    return export


def read_back(file: Path, *exports: Export) -> list[Checked | Recorded]:
    file.write_bytes(b"".join(line + b"\n" for line in export_lines(exports)))
    with open_source(file) as source:
        items = list(check(read_events(source)))
    assert all(isinstance(item, (Checked, Recorded)) for item in items), items
    return [item for item in items if isinstance(item, (Checked, Recorded))]


def judged(items: list[Checked | Recorded]) -> list[Verdict]:
    """What `loopwarden judge` makes of them."""
    folder = Folder()
    verdicts = []
    for item in items:
        if isinstance(item, Checked):
            folded = folder.fold(item.event)
            assert folded.rejected is None
            verdicts += folded.verdicts
    return verdicts


def compared(items: list[Checked | Recorded]) -> Comparison:
    replay = Replay(LogPart())
    for item in items:
        if isinstance(item, Checked):
            assert replay.take_event(item.event, item.line) is None
            continue
        told = recorded_of(item.value)
        if isinstance(told, RunExported):
            replay.take_exported(told)
        else:
            replay.take_recorded(told.verdict, None)
    return replay.compared()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export") / "runs.jsonl"


@settings(max_examples=25)
@given(log=partitions())
def test_an_exported_log_is_judged_to_the_same_verdicts_in_every_field(file: Path, log: Log) -> None:
    items = read_back(file, exported(log))

    def by_run(verdicts: list[Verdict]) -> list[Verdict]:
        return sorted(verdicts, key=lambda verdict: verdict.run_id)

    assert by_run(judged(items)) == by_run([each.verdict for each in log.published])
    assert (compared(items).differing, compared(items).same) == ([], compared(items).same)
    assert compared(items).same == len({(each.verdict.run_id, each.verdict.verdict_id) for each in log.published})


def test_runs_of_partitions_with_other_policies_go_into_one_file(file: Path) -> None:
    strict, lax = log(loop("r", 10)), log(loop("s", 5, 11))
    lax = log_of_lax(lax)

    items = read_back(file, exported(lax, partition=0), exported(strict, partition=0))

    assert [verdict.verdict_id for verdict in judged(items)] == [
        each.verdict.verdict_id for each in (*strict.published, *lax.published)
    ]
    assert lax.published


def log_of_lax(given: Log) -> Log:
    return log_of([Record(1, None, applied(1, LAX)), *given.records[1:]], {0: STRICT, 1: LAX})


def test_a_verdict_stands_below_the_event_that_caused_it(file: Path) -> None:
    items = read_back(file, exported(log(loop("r", 10, 2))))

    kinds = [item.wire["type"] if isinstance(item, Checked) else item.value["type"] for item in items]
    assert kinds == [
        "run.exported",
        "policy.applied",
        "tool_call.started",
        "tool_call.finished",
        "tool_call.started",
        "tool_call.finished",
        *[item.value["type"] for item in items[6:] if isinstance(item, Recorded)],
    ]


def test_a_file_says_that_a_run_is_not_whole_and_it_is_not_compared(file: Path) -> None:
    items = read_back(file, exported(log(loop("r", 10, 6)), first=4, whole_log=False, policy=STRICT, number=0))

    found = compared(items)

    assert (found.differing, found.not_compared) == ([], {"truncated": ["r"]})


def test_a_removed_line_of_a_verdict_is_missing(file: Path) -> None:
    loops = log(loop("r", 10))

    found = compared(read_back(file, exported(loops, loops.published[1:])))

    assert [each.missing for each in found.differing] == [[loops.published[0].verdict]]


@pytest.mark.parametrize("kept", [-1, 1, 0])
def test_a_run_whose_events_are_not_all_in_its_file_is_not_compared(file: Path, kept: int) -> None:
    items = read_back(file, exported(log(loop("r", 10))))
    events = [item for item in items if isinstance(item, Checked)]

    found = compared([item for item in items if item not in events[kept:]])

    assert (found.differing, found.same, found.not_compared) == ([], 0, {"cut_short": ["r"]})


def test_a_file_that_holds_an_export_twice_is_compared(file: Path) -> None:
    items = read_back(file, exported(log(loop("r", 10))))

    found = compared([*items, *items])

    assert (found.differing, found.not_compared) == ([], {}) and found.same > 0


def test_events_that_were_not_judged_yet_miss_no_verdicts(file: Path) -> None:
    loops = log(loop("r", 10, 8))
    end = loops.published[1].cause
    # The worker goes on while the log is read: some of what comes later is published already.
    published = loops.published[:2]

    found = compared(read_back(file, exported(loops, published, end=end)))

    assert (found.differing, found.same) == ([], 1)


@pytest.mark.parametrize("outcome", [{"error": None}, {"result": None}, {}, {"result": {"a": None}}])
def test_an_outcome_given_as_null_stays_another_one_than_none_given(outcome: dict[str, object]) -> None:
    call = {"type": "tool_call.finished", "event_id": "e", "run_id": "r", "ts": 5, "tool": "read", "args": None}
    (event,) = decode_record(encode_event({**call, **outcome}), 7)
    assert not isinstance(event, Rejected)

    (read,) = decode_record(event_json(event))

    assert read == event

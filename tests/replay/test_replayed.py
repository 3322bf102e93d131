"""Judging a partition again, beside what was published about it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.judge.run_state import IDLE_MS
from loopwarden.replay import Comparison, Replay
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Verdict

from .logs import Log, Published, Record, applied, log_of, partitions

STRICT = PolicyDocument.from_value(
    {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 3}}}
)
LAX = PolicyDocument.from_value({"tools": {"loopDetection": {"enabled": True}}})


def replayed(log: Log, published: list[Published] | None = None, agent: str | None = None, **part: Any) -> Comparison:
    replay = Replay(log.part(**part), agent)
    log.fill(replay, published, part.get("first_read", 0))
    return replay.compared()


def read_from(log: Log, first: int, **part: Any) -> Comparison:
    """The log without what lies below an offset."""
    replay = Replay(log.part(whole_log=False, since=first, **part))
    log.fill(replay, None, first)
    return replay.compared()


def ids(found: list[list[Verdict]]) -> list[str]:
    return [verdict.verdict_id for verdicts in found for verdict in verdicts]


def loop(run_id: str, at: int, calls: int = 4, started: bool = False, **more: Any) -> list[Record]:
    """The same call again and again, a record an event."""
    events: list[dict[str, Any]] = [{"type": "run.started"}] if started else []
    for _ in range(calls):
        call = {"tool": "read", "args": {"path": "x"}}
        events += [{"type": "tool_call.started", **call}, {"type": "tool_call.finished", "result": "same", **call}]
    return [
        Record(
            at + number,
            run_id.encode(),
            encode_event({"event_id": f"{run_id}-{at}-{number}", "run_id": run_id, "ts": number, **event, **more}),
        )
        for number, event in enumerate(events)
    ]


def log(*records: list[Record]) -> Log:
    """A log of loops under the strict policy."""
    first = [Record(1, None, applied(0, STRICT))]
    return log_of([*first, *(record for each in records for record in each)], {0: STRICT, 1: LAX})


@settings(max_examples=25)
@given(partitions(), st.data())
def test_what_the_worker_published_is_the_same_whatever_it_published_twice(log: Log, data: st.DataObject) -> None:
    twice = data.draw(st.lists(st.sampled_from(log.published), max_size=3)) if log.published else []

    found = replayed(log, [*log.published, *twice])

    assert (found.differing, found.not_compared, found.expired) == ([], {}, 0)
    assert found.same == len({(each.verdict.run_id, each.verdict.verdict_id) for each in log.published})


@settings(max_examples=25)
@given(partitions(), st.data())
def test_a_removed_verdict_is_missing_and_an_invented_one_extra(log: Log, data: st.DataObject) -> None:
    unique = list({(each.verdict.run_id, each.verdict.verdict_id): each for each in log.published}.values())
    removed = data.draw(st.lists(st.sampled_from(unique), max_size=2, unique_by=id)) if unique else []
    invented = [
        Published(each.cause, msgspec.structs.replace(each.verdict, verdict_id=f"invented-{number}"))
        for number, each in enumerate(removed)
    ]
    gone = {each.verdict.verdict_id for each in removed}
    kept = [each for each in log.published if each.verdict.verdict_id not in gone]

    found = replayed(log, [*kept, *invented])

    assert sorted(ids([each.missing for each in found.differing])) == sorted(
        each.verdict.verdict_id for each in unique if each.verdict.verdict_id in gone
    )
    assert sorted(ids([each.extra for each in found.differing])) == sorted(each.verdict.verdict_id for each in invented)


@settings(max_examples=25)
@given(partitions(), st.data())
def test_a_log_without_its_beginning_gives_no_wrong_difference(log: Log, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(log.records) - 1))

    found = read_from(log, first, policy=log.archive[0], number=0, known_from=max(log.archive))

    assert found.differing == []


@settings(max_examples=25)
@given(partitions(), st.integers(1, 5))
def test_shards_come_to_what_one_process_comes_to(log: Log, shards: int) -> None:
    whole = replayed(log)
    total = Comparison()
    for shard in range(shards):
        total.add(replayed(log, shard=shard, shards=shards))

    assert (total.same, total.runs, total.dead) == (whole.same, whole.runs, whole.dead)


def test_a_field_that_is_not_the_same_is_told() -> None:
    loops = log(loop("r", 10))
    changed = [
        Published(each.cause, msgspec.structs.replace(each.verdict, count=99, message="x")) for each in loops.published
    ]

    [run] = replayed(loops, changed).differing

    assert [each.fields for each in run.changed] == [["count", "message"]] * len(changed)
    assert (run.missing, run.extra) == ([], [])


def test_a_verdict_about_a_run_that_has_no_events_is_extra() -> None:
    loops = log(loop("r", 10))
    [other, *_] = loops.published
    invented = msgspec.structs.replace(other.verdict, run_id="nobody")

    found = replayed(loops, [*loops.published, Published(3, invented)])

    assert [(each.run_id, len(each.extra)) for each in found.differing] == [("nobody", 1)]


def test_a_run_whose_beginning_is_gone_is_named_and_not_compared() -> None:
    found = read_from(log(loop("gone", 10), loop("r", 20, started=True)), 3, policy=STRICT, number=0)

    assert found.not_compared == {"truncated": ["gone"]}
    assert (found.differing, found.same) == ([], len(log(loop("r", 20)).published))


def test_a_run_that_a_verdict_says_began_earlier_is_not_compared_though_it_says_that_it_starts() -> None:
    again = log(loop("r", 10), loop("r", 30, started=True))

    found = read_from(again, 1 + len(loop("r", 10)), policy=STRICT, number=0)

    assert found.not_compared == {"truncated": ["r"]}


def test_a_run_seen_more_than_a_day_after_the_first_record_read_is_whole() -> None:
    begun = 10 + IDLE_MS
    late = log(loop("first", 10, 1), loop("early", begun, 2), loop("late", begun + 10))

    found = read_from(late, 1, policy=STRICT, number=0)

    assert found.not_compared == {"truncated": ["first", "early"]}
    assert (found.differing, found.same) == ([], len(log(loop("late", 1)).published))


def test_a_run_that_began_under_a_policy_nobody_knows_is_named_until_one_is_applied() -> None:
    records = [*loop("before", 10), Record(30, None, applied(1, LAX)), *loop("after", 40, 11)]
    unknown = log_of(records, {0: STRICT, 1: LAX})

    found = replayed(unknown, known_from=1)

    assert found.not_compared == {"policy_unknown": ["before"]}
    assert found.same == len(unknown.published) > 0


def test_what_is_not_judged_yet_is_no_difference() -> None:
    loops = log(loop("r", 10))
    [first, *_] = loops.published

    replay = Replay(loops.part(end=first.cause))
    for offset, record in enumerate(loops.records[: first.cause]):
        replay.take(offset, record.append_time, record.key, record.value, None)
    # They may come while the log is read.
    for cause, verdict in loops.published:
        replay.take_recorded(verdict, cause, b"r")

    assert replay.compared().differing == []


def test_verdicts_that_are_no_longer_retained_are_counted_and_not_missing() -> None:
    loops = log(loop("old", 10), loop("new", 30))
    new = [each for each in loops.published if each.verdict.run_id == "new"]

    found = replayed(loops, new, recorded_from=new[0].cause)

    assert (found.differing, found.same, found.expired) == ([], len(new), len(loops.published) - len(new))


def test_verdicts_of_other_rules_are_not_compared() -> None:
    loops = log(loop("r", 10), loop("s", 30))
    others = [
        Published(each.cause, msgspec.structs.replace(each.verdict, rules_version=7, verdict_id=f"v{number}"))
        if each.verdict.run_id == "r"
        else each
        for number, each in enumerate(loops.published)
    ]

    found = replayed(loops, others)

    assert (found.differing, found.not_compared) == ([], {"other_rules": ["r"]})


def test_only_verdicts_caused_from_an_offset_on_are_compared() -> None:
    loops = log(loop("r", 10, 8), loop("over", 5))
    since = loops.published[2].cause
    late = [each for each in loops.published if each.cause >= since]

    found = replayed(loops, late, since=since)

    assert (found.differing, found.same) == ([], len(late))


def test_runs_of_other_agents_are_not_compared() -> None:
    loops = log(loop("r", 10, agent_id="a"), loop("s", 30, agent_id="b"))

    found = replayed(loops, [], agent="a")

    assert [each.run_id for each in found.differing] == ["r"]
    assert found.runs == 1


def test_another_policy_says_what_it_would_have_added_and_what_not() -> None:
    loops = log(loop("r", 10))

    more = replayed(log_of(loops.records, {0: LAX}), [], policy=STRICT, fixed=True)
    less = replayed(loops, policy=LAX, fixed=True)

    assert (more.missing, more.extra) == (len(loops.published), 0)
    assert (less.missing, less.extra) == (0, len(loops.published))


@settings(max_examples=25)
@given(partitions())
def test_a_policy_given_is_that_of_every_run(log: Log) -> None:
    under_it = log_of([each for each in log.records if each.key], {})
    renumbered = {each.verdict.verdict_id for each in under_it.published}

    found = replayed(log, [], policy=PolicyDocument.from_value({}), fixed=True)

    assert set(ids([each.missing for each in found.differing])) == renumbered

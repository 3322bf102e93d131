"""Which of many policies is chosen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.replay import Course, RunUnder, Spared, Tally, WhatIf, candidates, choose, front, suspects, tallies
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument

from .logs import Log, partitions

TALLIES = st.lists(
    st.builds(
        Tally, resolved=st.just(10), unresolved=st.just(10), harmed=st.integers(0, 10), stopped=st.integers(0, 10)
    ),
    min_size=1,
    max_size=12,
)
STOPS, HARMLESS = Course(1, 1, None, Spared(4)), Course(1)


def run(outcome: str, *courses: Course) -> RunUnder:
    return RunUnder("r", None, outcome, 9, 0, courses)  # type: ignore[arg-type]


def test_a_resolved_run_that_is_stopped_is_harmed_and_spares_nothing() -> None:
    first, second = tallies(
        [run("resolved", STOPS, HARMLESS), run("unresolved", STOPS, STOPS), run("unknown", HARMLESS, STOPS)], 2
    )

    assert (first.harmed, first.stopped, first.stopped_unknown, first.spared_calls) == (1, 1, 0, 4)
    assert (second.harmed, second.stopped, second.stopped_unknown, second.spared_calls) == (0, 1, 1, 8)


@given(TALLIES)
def test_no_policy_beats_one_of_the_front_and_each_other_is_beaten_or_equalled(found: list[Tally]) -> None:
    best = front(found)

    def beats(one: Tally, other: Tally) -> bool:
        return (
            one.stopped >= other.stopped
            and one.harmed <= other.harmed
            and (one.stopped, one.harmed) != (other.stopped, other.harmed)
        )

    assert not any(beats(found[other], found[at]) for at in best for other in range(len(found)))
    for at in set(range(len(found))) - set(best):
        assert any(found[of].stopped >= found[at].stopped and found[of].harmed <= found[at].harmed for of in best)


@given(TALLIES, st.sampled_from([0.0, 0.1, 0.5]))
def test_the_chosen_one_stops_most_of_those_that_harm_little(found: list[Tally], most_harm: float) -> None:
    chosen = choose(found, most_harm)

    allowed = [tally.stopped for tally in found if tally.harmed_share <= most_harm and tally.stopped]
    assert (None if chosen is None else found[chosen].stopped) == max(allowed, default=None)


def test_of_equal_policies_the_most_patient_is_shown() -> None:
    equal = Tally(resolved=1, unresolved=1, stopped=1)

    assert front([equal, equal]) == [1]


def test_every_policy_tried_can_be_reached_by_its_window_and_keeps_what_agents_have_of_their_own() -> None:
    overlay = {"agents": {"list": [{"id": "a", "tools": {"loopDetection": {"warningThreshold": 7}}}]}}

    for candidate in candidates(PolicyDocument.from_value(overlay)):
        policy = candidate.document.resolve(None)
        assert policy.detectors_on
        assert (policy.warning_threshold, policy.critical_threshold) == (candidate.warning, candidate.critical)
        assert policy.global_circuit_breaker_threshold == candidate.breaker < policy.history_size
        assert candidate.document.resolve("a").warning_threshold == 7


def test_the_policy_to_begin_with_stays_as_it_is() -> None:
    base = PolicyDocument.from_value({"tools": {"loopDetection": {"historySize": 50}}})
    candidates(base)

    assert base.value == {"tools": {"loopDetection": {"historySize": 50}}}
    assert len(candidates(DEFAULT_DOCUMENT)) == len({each.document.digest for each in candidates(DEFAULT_DOCUMENT)})


@settings(max_examples=15)
@given(partitions())
def test_a_run_that_the_strictest_policy_never_stops_is_stopped_by_none(log: Log) -> None:
    """Where no run brings thresholds of its own (`run.started`), as a fleet's does not."""
    tried = [each.document for each in candidates(DEFAULT_DOCUMENT)]
    what_if = WhatIf(log.part(), tried)
    for offset, record in enumerate(log.records):
        what_if.take(offset, record.append_time, record.key, record.value, None)

    suspected = set(suspects(what_if.runs()))
    for run_under in what_if.runs():
        assert run_under.run_id.encode() in suspected or not any(course.stops for course in run_under.courses)


@pytest.mark.parametrize("shares", [(0, 0)])
def test_shares_of_nothing_are_nothing(shares: tuple[float, float]) -> None:
    assert (Tally().harmed_share, Tally().stopped_share) == shares

"""How calls are cut into patterns."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from loopwarden.report.stretches import Repetition, repetitions


def test_one_call_again_and_again_is_one_stretch() -> None:
    assert repetitions("abbbbc") == [Repetition(0, 1, 1), Repetition(1, 5, 1), Repetition(5, 6, 1)]


def test_calls_in_turn_are_one_stretch_though_the_last_turn_is_not_whole() -> None:
    assert repetitions("xabababa") == [Repetition(0, 1, 1), Repetition(1, 8, 2)]


def test_a_turn_that_comes_only_twice_is_chance() -> None:
    assert {found.period for found in repetitions("abcabc")} == {1}


def test_of_two_patterns_that_go_equally_far_the_shorter_one_is_taken() -> None:
    assert repetitions("aaaaaaaa") == [Repetition(0, 8, 1)]


def test_no_stretch_goes_over_a_boundary() -> None:
    assert repetitions("aaaa", [2, 2, 0, 4]) == [Repetition(0, 2, 1), Repetition(2, 4, 1)]


@given(st.text("abc", max_size=60), st.lists(st.integers(0, 60)))
def test_stretches_are_all_the_calls_in_order_and_each_repeats_its_pattern(calls: str, boundaries: list[int]) -> None:
    found = repetitions(calls, boundaries)
    assert "".join(calls[each.start : each.end] for each in found) == calls
    for start, end, period in found:
        assert all(calls[place] == calls[place - period] for place in range(start + period, end))

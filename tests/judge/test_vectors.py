from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .cases import Case, cases, hashed
from .players import FrozenPlayer, JudgePlayer, Played, Player, RecountPlayer, play

SEQUENCES = cases("sequences.jsonl")
ASSEMBLY = cases("assembly.jsonl")
HISTORIES = cases("random-histories.jsonl.gz")
NAMED = [pytest.param(case, id=case.name) for case in (*SEQUENCES, *ASSEMBLY)]
BLOCKS_OF_HISTORIES = [pytest.param(HISTORIES[at : at + 20], id=f"history-{at}-{at + 19}") for at in range(0, 400, 20)]
PLAYERS = [
    pytest.param(JudgePlayer, id="judge"),
    pytest.param(FrozenPlayer, id="frozen-after-every-event"),
    pytest.param(RecountPlayer, id="recount"),
]


def assert_as_expected(case: Case, played: Played) -> None:
    assert played.decisions == case.decisions, case.name
    assert played.orders == case.orders, case.name
    if case.warned is not None:
        assert played.warned == case.warned, case.name


def hashed_log(case: Case) -> list[dict[str, Any]]:
    return [hashed(event) for event in case.events]


def test_no_vector_is_missing() -> None:
    assert (len(SEQUENCES), len(ASSEMBLY), len(HISTORIES)) == (92, 55, 400)
    assert sum(len(case.events) for case in HISTORIES) == 33_200


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("case", NAMED)
def test_a_case_has_its_decisions_orders_and_warnings(case: Case, player: Callable[[], Player]) -> None:
    assert_as_expected(case, play(player(), case.events, case.policy))


@pytest.mark.parametrize("case", NAMED)
def test_hashes_instead_of_payloads_give_a_case_the_same_verdicts(case: Case) -> None:
    played = play(JudgePlayer(), hashed_log(case), case.policy)
    assert_as_expected(case, played)
    assert played.verdicts == play(JudgePlayer(), case.events, case.policy).verdicts
    assert played.verdicts == play(RecountPlayer(), hashed_log(case), case.policy).verdicts


@pytest.mark.parametrize("histories", BLOCKS_OF_HISTORIES)
def test_a_random_history_has_its_decisions_and_orders_in_both_forms(histories: list[Case]) -> None:
    for case in histories:
        with_payloads = play(JudgePlayer(), case.events, case.policy)
        with_hashes = play(FrozenPlayer(), hashed_log(case), case.policy)
        assert_as_expected(case, with_payloads)
        assert with_hashes == with_payloads


@pytest.mark.parametrize("histories", BLOCKS_OF_HISTORIES)
def test_the_recount_agrees_with_a_random_history_verdict_for_verdict(histories: list[Case]) -> None:
    for case in histories:
        recounted = play(RecountPlayer(), case.events, case.policy)
        assert_as_expected(case, recounted)
        assert recounted == play(JudgePlayer(), case.events, case.policy)

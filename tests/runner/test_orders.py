"""Verdicts as they are applied, one after the other."""

from __future__ import annotations

import threading
from typing import Any

from msgspec.structs import replace

from loopwarden.gateway import Dropped, Receipt
from loopwarden.runner.orders import IDLE_S, Orders
from loopwarden_schemas.structs import Verdict

from .order import ORDER

HASH = "a" * 32


def _verdict(n: int, action: Any = "block", begun: int = 1000, **given: Any) -> Verdict:
    told = {"args_hash": HASH, **given}
    return replace(ORDER, verdict_id=f"{begun}-{n}", n=n, action=action, begun=begun, **told)


def _receipt(offset: int | None) -> Receipt:
    receipt = Receipt("e", threading.Condition())
    if offset is not None:
        receipt.settle(partition=0, offset=offset, append_time=0)
    return receipt


def test_an_order_covers_its_call_or_its_whole_tool_until_it_is_cleared() -> None:
    orders = Orders()
    orders.apply(_verdict(1), 10)
    assert orders.blocking("read", HASH) and not orders.blocking("read", "other") and not orders.blocking("ls", HASH)
    orders.apply(_verdict(2, scope="tool", args_hash=None), 11)
    assert orders.blocking("read", "other")
    orders.apply(_verdict(3, "clear", scope="tool", args_hash=None), 12)
    assert not orders.blocking("read", "other") and orders.blocking("read", HASH)
    orders.apply(_verdict(4, "clear"), 13)
    assert not orders.has_blocks


def test_what_is_not_above_the_last_is_ignored() -> None:
    orders = Orders()
    assert orders.apply(_verdict(2, "clear"), 11)
    assert not orders.apply(_verdict(1), 10)
    assert not orders.apply(_verdict(2, "clear"), 11)
    assert not orders.has_blocks


def test_a_block_of_an_attempt_is_no_order() -> None:
    orders = Orders()
    orders.apply(_verdict(1, phase="attempt"), 10)
    assert not orders.has_blocks


def test_a_verdict_of_a_run_that_began_anew_ends_the_orders_before_it() -> None:
    orders = Orders()
    orders.apply(_verdict(7), 10)
    orders.apply(_verdict(1, "warn", begun=2000, phase="attempt"), 20)
    assert not orders.has_blocks


def test_an_abort_ends_the_orders_and_is_lifted_by_a_clear_of_the_run() -> None:
    orders = Orders()
    orders.apply(_verdict(1), 10)
    orders.apply(_verdict(2, "abort", scope="run", phase="attempt"), 11)
    assert orders.aborted() and not orders.has_blocks
    orders.apply(_verdict(3, "clear", scope="run", tool=None, args_hash=None), 12)
    assert orders.aborted() is None


def test_a_run_started_after_an_abort_begins_the_run_anew_whichever_is_seen_first() -> None:
    orders = Orders()
    orders.apply(_verdict(1, "abort", scope="run", phase="attempt"), 10)
    orders.run_started(_receipt(None))
    assert orders.aborted() is None
    orders = Orders()
    orders.run_started(_receipt(20))
    orders.apply(_verdict(1, "abort", scope="run", phase="attempt"), 10)
    assert orders.aborted() is None
    orders.apply(_verdict(1, "abort", begun=2000, scope="run", phase="attempt"), 21)
    assert orders.aborted() is not None


def test_a_run_started_in_the_middle_changes_nothing() -> None:
    orders = Orders()
    orders.apply(_verdict(1), 10)
    orders.run_started(_receipt(11))
    assert orders.has_blocks


def test_what_is_judged_of_a_run_before_its_end_places_no_order_after_it() -> None:
    orders = Orders()
    finished = _receipt(None)
    orders.run_finished(finished)
    orders.apply(_verdict(1), 10)
    finished.settle(partition=0, offset=11, append_time=0)
    orders.apply(_verdict(2, scope="tool", args_hash=None), 10)
    assert not orders.has_blocks
    orders.apply(_verdict(1, begun=2000), 12)
    assert orders.has_blocks


def test_an_end_that_never_reached_the_log_ended_nothing() -> None:
    orders = Orders()
    orders.apply(_verdict(1), 10)
    finished = _receipt(None)
    orders.run_finished(finished)
    assert not orders.has_blocks and orders.blocking("read", HASH) is None
    finished.settle(error=Dropped("there was no room"))
    orders.settle()
    assert orders.blocking("read", HASH)


def test_an_order_read_before_the_end_is_acknowledged_holds_where_its_cause_lies_behind_the_end() -> None:
    orders = Orders()
    finished = _receipt(None)
    orders.run_finished(finished)
    orders.apply(_verdict(1), 10)
    orders.apply(_verdict(1, begun=2000, tool="write"), 12)
    finished.settle(partition=0, offset=11, append_time=0)
    orders.settle()
    assert orders.blocking("write", HASH) and not orders.blocking("read", HASH)


def test_an_end_acknowledged_without_its_offset_ends_what_was_judged_by_then() -> None:
    orders = Orders()
    orders.apply(_verdict(1), 10)
    finished = _receipt(None)
    orders.run_finished(finished)
    finished.settle(partition=0, offset=None, append_time=0)
    orders.settle()
    assert not orders.has_blocks
    orders.apply(_verdict(1, begun=2000), 12)
    assert orders.has_blocks


def test_orders_end_after_a_day_without_anything() -> None:
    orders = Orders()
    orders.active(1.0)
    orders.apply(_verdict(1), 10)
    orders.active(1.0 + IDLE_S)
    assert orders.has_blocks
    orders.active(2.0 + 2 * IDLE_S)
    assert not orders.has_blocks


def test_a_warning_is_taken_once_with_its_call_or_later_never_with_another_that_runs() -> None:
    orders = Orders()
    orders.apply(_verdict(1, "warn", phase="attempt", call_id="a"), 10)
    assert orders.take_warnings("b") == [] and orders.warning() is None
    assert [each.n for each in orders.take_warnings("a")] == [1]
    assert orders.take_warnings("a") == []
    orders.apply(_verdict(2, "warn", phase="attempt", call_id="a"), 11)  # too late for its call
    assert orders.warning() is not None
    assert [each.n for each in orders.take_warnings("c")] == [2]

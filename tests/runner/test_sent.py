"""Which event must be judged before an answer is certain."""

from __future__ import annotations

import threading

from loopwarden.gateway import Dropped, Receipt, Spooled
from loopwarden.runner.sent import Sent


def _sent(number: int) -> tuple[Sent, list[Receipt]]:
    sent, receipts = Sent(), [Receipt(str(each), threading.Condition()) for each in range(number)]
    for receipt in receipts:
        sent.note(receipt)
    return sent, receipts


def test_it_is_the_newest() -> None:
    sent, receipts = _sent(3)
    assert sent.newest() is receipts[2]
    assert Sent().newest() is None


def test_what_was_dropped_is_passed_over_whenever_that_becomes_known() -> None:
    sent, receipts = _sent(4)
    receipts[3].settle(error=Dropped(""))
    assert sent.newest() is receipts[2]
    receipts[0].settle(partition=0, offset=7)
    receipts[2].settle(error=Dropped(""))
    receipts[1].settle(error=Dropped(""))
    assert sent.newest() is receipts[0]


def test_what_waits_in_a_file_will_be_judged_yet() -> None:
    sent, receipts = _sent(2)
    receipts[1].settle(error=Spooled(""))
    assert sent.newest() is receipts[1]


def test_an_event_in_the_log_is_remembered_over_any_number_that_were_dropped() -> None:
    sent, (first,) = _sent(1)
    first.settle(partition=0, offset=7)
    for number in range(10_000):
        receipt = Receipt(str(number), threading.Condition())
        receipt.settle(error=Dropped(""))
        sent.note(receipt)
    assert sent.newest() is first

"""Whether a run had ended before this process began it anew: read back from its own events, where verdicts are silent.

Orders end with their run and are not cleared then. To a process that uses a run's id again after another process
finished that run, the orders found look as if they held; what tells is the `run.finished` in `agent-events`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from loopwarden.client import Connection, Follower, following
from loopwarden.runner.orders import IDLE_S
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import RunFinished

_AT_MOST_S: Final = 10.0
"""So long it is read for one run. On a busy partition there may be more; then the orders found hold."""

logger = logging.getLogger("loopwarden.runner")


class Question(NamedTuple):
    """About the events of a run from one offset to another, both included; `answer` is given the end's, or None."""

    run_id: str
    partition: int
    start: int
    stop: int
    answer: Callable[[int | None], None]


class Ends:
    """Answers, one after another, in a thread that lives as long as there are questions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._questions: deque[Question] = deque()
        self._is_running = False
        self._has_failed = False

    def ask(self, question: Question) -> None:
        """Answer a question soon, and in any case."""
        with self._lock:
            self._questions.append(question)
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="loopwarden runner ends", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._questions:
                    self._is_running = False
                    return
                question = self._questions.popleft()
            question.answer(self._answer(question))

    def _answer(self, question: Question) -> int | None:
        try:
            with following(self._connection, self._connection.topics().events.name) as follower:
                return last_end(follower, question)
        except Exception as error:  # no right to read there, no broker: whatever it is, the orders found hold then
            if not self._has_failed:
                self._has_failed = True
                logger.warning(
                    "whether run %s had ended before it began anew cannot be read: orders found for it hold until they"
                    " are cleared, and those of further such runs: %s",
                    question.run_id,
                    error,
                )
            return None


def last_end(follower: Follower, question: Question) -> int | None:
    """Return the offset of the last event of a run that ended; None: it went on, as far as can be read in time.

    Raises:
        ClusterError: the broker stopped answering.
        TimeoutError: there is too much to read.
    """
    key, deadline = question.run_id.encode(), time.monotonic() + _AT_MOST_S
    found: int | None = None
    newest_at = 0
    for records in follower.read({question.partition: (question.start, question.stop + 1)}):
        for record in records:
            if record.key != key:
                continue
            if newest_at and record.timestamp - newest_at > IDLE_S * 1000:
                found = record.offset - 1
            newest_at = max(newest_at, record.timestamp)
            if any(
                type(each) is RunFinished for each in decode_record(record.value, record.timestamp, record.content_type)
            ):
                found = record.offset
        if time.monotonic() > deadline:
            raise TimeoutError(f"there is more to read than can be read in {_AT_MOST_S:.0f} s")
    return found

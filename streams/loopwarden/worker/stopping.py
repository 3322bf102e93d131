"""Faust's worker with an end to its stopping.

What stops waits for the broker: for acknowledgements, a last commit, the group. Where the broker is gone for good, that
would be for ever. Ending at once loses nothing: the next start goes on from what is committed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any, Final

import faust

MOST_STOPPING_S: Final = 20.0
"""Below what Kubernetes waits by default (30 s) before it kills."""

logger = logging.getLogger(__name__)


class StoppingWorker(faust.Worker):
    """Ends the process where it has not stopped some seconds after it was asked to."""

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        if not self._signal_stop_time:
            patience = threading.Timer(MOST_STOPPING_S, _end_at_once)
            patience.daemon = True
            patience.start()
        super()._schedule_shutdown(signal)


def _end_at_once(*_: Any) -> None:
    logger.error(
        "this worker was asked to stop %g s ago and still waits for the broker: it ends at once, the next start goes on"
        " from what is committed",
        MOST_STOPPING_S,
    )
    os._exit(1)

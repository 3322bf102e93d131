from __future__ import annotations

import os
import signal

import pytest

from loopwarden.client import connect

HANG_S = 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_is_forked_while_another_thread_connects_can_connect_too() -> None:
    with connect._silencing:
        child = os.fork()
        if child == 0:
            signal.alarm(HANG_S)  # ends it where it waits for a lock that nobody holds
            with connect._kafka_python_silenced():
                os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

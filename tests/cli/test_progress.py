from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

EVENTS = b'{"type":"run.started","run_id":"r"}\n' * 600
HANG_S = 60


def test_a_bar_shows_on_a_terminal_that_a_long_step_goes_on_and_is_cleared() -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "loopwarden.cli", "judge", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        assert process.stdin is not None
        assert process.stdout is not None
        shown = b""
        deadline = time.monotonic() + HANG_S
        # The bar comes once the step has taken a while, and not before: here it takes as long as that.
        while b" events" not in shown:
            assert time.monotonic() < deadline, shown
            process.stdin.write(EVENTS)
            process.stdin.flush()
            if select.select([master], [], [], 0.1)[0]:
                shown += os.read(master, 65536)
        process.stdin.close()
        out = process.stdout.read()
    shown += _read_to_end(master)

    assert out == b"no verdicts; 1 run, 0 calls: 0 warned about, 0 blocked; 0 runs aborted\n"
    # Its line is erased before anything else is told.
    assert b"\x1b[2K" in shown[: shown.index(b"the detectors were off")]


def test_no_bar_is_shown_where_nobody_watches() -> None:
    command = [sys.executable, "-m", "loopwarden.cli", "judge", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(EVENTS)
        process.stdin.flush()
        time.sleep(1.5)
        process.stdin.write(EVENTS)
        process.stdin.close()
        told = process.stderr.read()

    assert told.startswith(b"the detectors were off")


def _read_to_end(master: int) -> bytes:
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:
        # Linux says EIO once the last writer has closed a terminal.
        pass
    os.close(master)
    return shown

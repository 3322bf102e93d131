"""Signals come in the middle of whatever a thread does, and people want to get out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HANG_S = 60


def _run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "settings", ["max_buffer_bytes=3000", "", "when_away='spool', spool_dir=sys.argv[1], max_buffer_bytes=3000"]
)
def test_a_signal_handler_may_send_an_event_whatever_it_interrupts(settings: str, tmp_path: Path) -> None:
    program = f"""
import logging, signal, sys, time
logging.disable(50)
sys.argv[1:] = [{str(tmp_path)!r}]
from loopwarden.gateway import Gateway
gateway = Gateway(bootstrap_servers="127.0.0.1:1", {settings})
heard = 0
def handler(*_):
    global heard
    gateway.started("signal", "read")
    heard += 1
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005)
end, sent = time.monotonic() + 2, 0
while time.monotonic() < end:
    gateway.started("run", "read")
    sent += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
stats = gateway.stats
assert stats.sent == sent + heard == stats.dropped + stats.buffered, (sent, heard, stats)
gateway.close(0)
assert gateway.stats.buffered == 0
print(heard)
"""
    (heard,) = _run(program)
    assert int(heard) > 100


def test_a_signal_handler_may_close_the_gateway() -> None:
    program = """
import logging, signal, time
logging.disable(50)
from loopwarden.gateway import Gateway
for number in range(30):
    gateway = Gateway(bootstrap_servers="127.0.0.1:1", max_buffer_bytes=2000)
    closed = False
    def handler(*_):
        global closed
        gateway.close(0)
        closed = True
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005 + number * 0.0001)
    receipts = []
    while not closed:
        receipts = [*receipts[-50:], gateway.started("run", "read")]
    assert gateway.stats.buffered == 0, gateway.stats
    assert all(receipt.done for receipt in receipts)
print("ended")
"""
    assert _run(program) == ["ended"]


def test_one_ctrl_c_ends_what_waits_for_room_and_loses_nothing() -> None:
    program = """
import logging, os, signal, threading
logging.disable(50)
from loopwarden.gateway import Gateway
gateway = Gateway(bootstrap_servers="127.0.0.1:1", when_away="block", max_buffer_bytes=2000)
threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
calls = 0
try:
    with gateway.run() as run:
        while True:
            with run.call("read") as call:
                calls += 1
except KeyboardInterrupt:
    print(calls, gateway.stats.sent, gateway.stats.buffered)
gateway.close(0)
"""
    calls, sent, buffered = (int(each) for each in _run(program))
    # The run's two events; and the call that was interrupted as it began, or as it ended.
    assert sent == buffered in (2 * calls + 2, 2 * calls + 3)


def test_close_takes_no_longer_than_it_says_where_a_broker_says_nothing() -> None:
    program = """
import logging, socket, time
logging.disable(50)
from loopwarden.gateway import Gateway
with socket.create_server(("127.0.0.1", 0)) as silent:
    gateway = Gateway(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}")
    gateway.started("run", "read")
    begun = time.monotonic()
    gateway.close(4)
    print(gateway.stats.dropped, time.monotonic() - begun)
"""
    dropped, seconds = _run(program)  # in a process of its own: kafka-python leaves sockets behind
    assert dropped == "1" and float(seconds) < 7


def test_ctrl_c_in_close_ends_the_waiting_and_says_what_became_of_the_events() -> None:
    program = """
import logging, os, signal, threading
logging.disable(50)
from loopwarden.gateway import Gateway
gateway = Gateway(bootstrap_servers="127.0.0.1:1")
receipt = gateway.started("run", "read")
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    gateway.close(1000)
except KeyboardInterrupt:
    print(gateway.stats.dropped, receipt.done)
"""
    assert _run(program) == ["1", "True"]

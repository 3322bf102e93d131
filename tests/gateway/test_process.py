"""Processes fork, and end, whatever their gateways are doing."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loopwarden.client import Connection
from loopwarden.gateway import Gateway

HANG_S = 90

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def _run(connection: Connection | None, program: str, *arguments: str) -> Any:
    servers = ("127.0.0.1:1", "") if connection is None else (connection.bootstrap_servers, connection.topic_prefix)
    head = f"""
import json, logging, multiprocessing, os, pathlib, signal, sys, threading, time
logging.disable(50)
from loopwarden.gateway import Gateway
SETTINGS = dict(bootstrap_servers={servers[0]!r}, prefix={servers[1]!r})
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", head + program, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout or "null")


def _call_ids(events: list[Any], run_id: str) -> list[str]:
    return [event.call_id for event in events if event.run_id == run_id]


def test_a_forked_process_begins_afresh(connection: Connection, logged: Any) -> None:
    program = """
gateway = Gateway(**SETTINGS)
run = gateway.run("run")
with run.call("read", call_id="parent"):
    pass
gateway.flush(30)
waiting = [gateway.started("parent", "read", call_id=str(number)) for number in range(50)]
pid = os.fork()
if pid == 0:
    before = gateway.stats
    with run.call("read", call_id="child") as call:
        pass
    sent = call.finished.wait(30)
    print(json.dumps([before.sent, before.buffered, sent, gateway.stats.acknowledged, waiting[-1].wait(0)]))
    sys.exit(0)
os.waitpid(pid, 0)
gateway.close()
assert gateway.stats.acknowledged == 52
"""
    sent_before, buffered_before, sent, acknowledged, _ = _run(connection, program)
    assert (sent_before, buffered_before, sent, acknowledged) == (0, 0, True, 2)
    events = logged(connection)
    assert _call_ids(events, "run") == ["parent"] * 2 + ["child"] * 2
    assert _call_ids(events, "parent") == [str(number) for number in range(50)]
    sources = [event.source for event in events if event.run_id == "run"]
    assert sources[0] == sources[1] != sources[2] == sources[3]


def test_no_forked_process_hangs_whatever_the_other_threads_do() -> None:
    program = """
gateway = Gateway(**SETTINGS, max_buffer_bytes=20_000)
def agent():
    run = gateway.run()
    while True:
        with run.call("read") as call:
            call.result(1)
        time.sleep(0.0005)
for _ in range(3):
    threading.Thread(target=agent, daemon=True).start()
pids = []
for _ in range(60):
    waiting = gateway.started("parent", "read")
    pid = os.fork()
    if pid == 0:
        waiting.wait(60)
        with gateway.run() as run, run.call("read"):
            pass
        gateway.stats
        os._exit(0)
    pids.append(pid)
    time.sleep(0.01)
end, hung = time.monotonic() + 30, set(pids)
while hung and time.monotonic() < end:
    hung = {pid for pid in hung if os.waitpid(pid, os.WNOHANG) == (0, 0)}
    time.sleep(0.1)
for pid in hung:
    os.kill(pid, signal.SIGKILL)
print(len(hung))
sys.stdout.flush()
os._exit(0)
"""
    assert _run(None, program) == 0


def test_a_forked_process_leaves_the_spool_of_its_parent_alone(
    connection: Connection, logged: Any, tmp_path: Path
) -> None:
    program = """
folder = pathlib.Path(sys.argv[1])
gateway = Gateway(**SETTINGS, when_away="spool", spool_dir=folder, max_buffer_bytes=5_000)
for number in range(250):
    gateway.started("parent", "read", call_id=str(number))
files = lambda: {str(path): path.stat().st_size for path in folder.rglob("*.events")}
before = files()
pid = os.fork()
if pid == 0:
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    assert files() == before
    for number in range(100):
        gateway.started("child", "read", call_id=str(number))
    gateway.close(0)
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert before.items() <= files().items() and len(files()) > len(before)
gateway.close(0)
"""
    _run(None, program, str(tmp_path))
    with Gateway(connection, when_away="spool", spool_dir=tmp_path) as gateway:
        assert gateway.flush(HANG_S)
    events = logged(connection)
    assert _call_ids(events, "parent") == [str(number) for number in range(250)]
    assert _call_ids(events, "child") == [str(number) for number in range(100)]


def test_what_a_worker_of_multiprocessing_sends_last_is_sent(connection: Connection, logged: Any) -> None:
    program = """
gateway = Gateway(**SETTINGS)
def work():
    for number in range(50):
        gateway.started("worker", "read", call_id=str(number))
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
assert process.exitcode == 0
"""
    _run(connection, program)
    assert _call_ids(logged(connection), "worker") == [str(number) for number in range(50)]


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "import gc; gc.collect()"])
def test_a_gateway_that_nobody_holds_at_the_end_still_sends(connection: Connection, logged: Any, end: str) -> None:
    program = f"""
def agent():
    gateway = Gateway(**SETTINGS)
    with gateway.run("run") as run:
        for number in range(20):
            with run.call("read", call_id=str(number)):
                pass
agent()
{end}
"""
    _run(connection, program)
    assert len([event for event in logged(connection) if event.run_id == "run"]) == 42


def test_a_gateway_that_nobody_holds_any_more_sends_what_waits_and_ends(connection: Connection) -> None:
    threads = threading.active_count()
    receipts = [Gateway(connection).started("run", "read") for _ in range(3)]
    gc.collect()
    assert all(receipt.wait(HANG_S) and receipt.acknowledged for receipt in receipts)
    deadline = time.monotonic() + HANG_S
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.1)
    assert threading.active_count() <= threads

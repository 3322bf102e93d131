from __future__ import annotations

import logging
import subprocess
import sys
import time
from typing import Any

import pytest
from msgspec import UNSET

from loopwarden.client import Connection
from loopwarden.gateway import Dropped, Gateway, Refused
from loopwarden_schemas.structs import RunFinished, RunStarted, ToolCallBlocked, ToolCallFinished, ToolCallStarted
from loopwarden_schemas.topics import partition_for

NOWHERE = "127.0.0.1:1"


def test_a_run_and_its_calls_are_the_events_of_the_contract_in_their_order(connection: Connection, logged: Any) -> None:
    with Gateway(connection) as gateway:
        with gateway.run("run-1", agent_id="docs", session_id="s", policy={"enabled": True}) as run:
            with run.call("read", {"path": "/x"}, call_id="c1") as call:
                call.result("text")
            run.blocked("read", {"path": "/x"}, verdict_id="v1", call_id="c2")
            run.compaction("timeout", succeeded=True)
        assert gateway.flush()
        events = logged(connection)
    kinds = [RunStarted, ToolCallStarted, ToolCallFinished, ToolCallBlocked, type(events[4]), RunFinished]
    assert [type(event) for event in events] == kinds
    assert {(event.run_id, event.agent_id, event.session_id) for event in events} == {("run-1", "docs", "s")}
    assert events[0].policy == {"enabled": True}
    assert (events[1].call_id, events[1].tool, events[1].args) == ("c1", "read", {"path": "/x"})
    assert (events[2].call_id, events[2].args, events[2].result) == ("c1", {"path": "/x"}, "text")
    assert (events[3].call_id, events[3].verdict_id) == ("c2", "v1")
    assert (events[4].trigger, events[4].succeeded) == ("timeout", True)
    assert events[5].reason == "done"
    assert len({event.event_id for event in events}) == 6
    assert len({event.source for event in events}) == 1
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]


def test_an_exception_in_a_call_is_its_error_and_goes_on(connection: Connection, logged: Any) -> None:
    with Gateway(connection) as gateway:
        with pytest.raises(OSError, match="no such file"), gateway.run("run") as run, run.call("read"):
            raise OSError("no such file")
        gateway.flush()
        _, _, finished, ended = logged(connection)
    assert finished.error == {"name": "OSError", "message": "no such file"}
    assert ended.reason == "OSError"


def test_a_call_that_says_nothing_is_void_and_none_is_an_outcome(connection: Connection, logged: Any) -> None:
    with Gateway(connection) as gateway:
        run = gateway.run("run")
        with run.call("void"):
            pass
        with run.call("null") as call:
            call.result(None)
        gateway.flush()
        void, null = (event for event in logged(connection) if isinstance(event, ToolCallFinished))
    assert void.result is UNSET and void.error is UNSET
    assert null.result is None


def test_a_receipt_says_where_the_event_lies(connection: Connection) -> None:
    with Gateway(connection) as gateway:
        first = gateway.started("some run", "read").result(30)
        second = gateway.finished("some run", "read", result=1).result(30)
    assert first.partition == second.partition == partition_for("some run", 2)
    assert first.offset is not None and second.offset == first.offset + 1
    assert first.append_time is not None and abs(first.append_time - time.time() * 1000) < 600_000


def test_a_finished_says_what_the_arguments_were_when_the_call_started(connection: Connection, logged: Any) -> None:
    args = {"path": "/x"}
    with Gateway(connection) as gateway:
        with gateway.run("run").call("read", args) as call:
            args["path"] = "/changed by the tool"
            call.result(args)
        gateway.flush()
        started, finished = logged(connection)
    assert started.args == finished.args == {"path": "/x"}
    assert finished.result == {"path": "/changed by the tool"}


def test_the_agent_is_spared_whatever_goes_wrong_and_it_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    gateway = Gateway(bootstrap_servers=NOWHERE)
    with caplog.at_level(logging.CRITICAL + 1):
        receipt = gateway.send({"type": "no such type", "run_id": "run"})
        assert isinstance(receipt.error, Refused)
        assert gateway.stats.failed >= 1
        gateway.started("run", "read", object(), call_id="x" * 100_000, usage={"input_tokens": "many"})
        gateway.close(0)
    assert gateway.stats.buffered == 0
    assert gateway.started("run", "read").error is not None


def test_strict_raises_our_errors() -> None:
    gateway = Gateway(bootstrap_servers=NOWHERE, strict=True)
    with pytest.raises(ValueError, match=r"run_id: must name a run"):
        gateway.send({"type": "run.started", "run_id": ""})
    gateway.close(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"payload": "hashed"}, r'^payload: must be "full" or "hash", got \'hashed\'$'),
        ({"when_away": "drop"}, r"^when_away: must be"),
        ({"max_payload_bytes": 2**20}, r"^max_payload_bytes: must be 0 to 409600, got 1048576$"),
        ({"when_away": "spool"}, r"^spool_dir: must be given"),
    ],
)
def test_a_setting_that_is_none_is_said_at_once(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gateway(bootstrap_servers=NOWHERE, **settings)


def test_a_gateway_that_closes_while_the_broker_is_away_counts_what_it_drops() -> None:
    gateway = Gateway(bootstrap_servers=NOWHERE)
    receipts = [gateway.started("run", "read") for _ in range(3)]
    gateway.close(0.1)
    assert all(isinstance(receipt.error, Dropped) for receipt in receipts)
    assert (gateway.stats.sent, gateway.stats.dropped, gateway.stats.buffered) == (3, 3, 0)


def test_a_process_that_ends_without_closing_sends_what_waits(connection: Connection, logged: Any) -> None:
    program = (
        "from loopwarden.gateway import Gateway\n"
        f"gateway = Gateway(bootstrap_servers={connection.bootstrap_servers!r}, prefix={connection.topic_prefix!r})\n"
        "gateway.started('warm', 'read').result(30)\n"
        "for number in range(50): gateway.started('run', 'read', call_id=str(number))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [event.call_id for event in logged(connection) if event.run_id == "run"] == [str(n) for n in range(50)]


def test_kafka_pythons_log_is_left_as_it_was(connection: Connection) -> None:
    logger = logging.getLogger("kafka")
    before = logger.level
    first, second = Gateway(connection), Gateway(connection)
    for gateway in (first, second):
        gateway.started("run", "read").result(30)
    first.close()
    second.close()
    assert logger.level == before

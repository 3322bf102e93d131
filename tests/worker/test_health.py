"""Whether a worker is alive and ready, and that it says so whatever its event loop does."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from loopwarden.broker.ports import free_port
from loopwarden.worker import SettingsError
from loopwarden.worker.endpoint import serve
from loopwarden.worker.gauges import Gauges
from loopwarden.worker.health import STUCK_S, UNSAVED_S, not_alive, not_ready
from loopwarden.worker.standing import LaneStanding, Lookout, Phase, Standing
from loopwarden.worker.transport import End

NOW = 1_000_000.0
JUDGING = Standing(at=NOW - 1, phase=Phase.judging, phase_since=NOW - 60, polled_at=NOW - 1)


def ask(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
    except OSError:
        return 0, None


def test_a_worker_that_judges_is_alive_and_ready() -> None:
    assert not_alive(JUDGING, NOW) == []
    assert not_ready(JUDGING, NOW) == []


def test_a_worker_without_partitions_is_ready_for_them() -> None:
    assert not_ready(replace(JUDGING, polled_at=None), NOW) == []


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.judging])
def test_only_a_worker_that_judges_is_ready_and_every_other_says_what_it_is_at(phase: Phase) -> None:
    standing = replace(JUDGING, phase=phase)
    assert not_alive(standing, NOW) == []
    assert phase.value in not_ready(standing, NOW)[0]


def test_recovery_says_how_much_is_left() -> None:
    standing = replace(JUDGING, phase=Phase.recovering, recovery_remaining=4711)
    assert "4711 records" in "".join(not_ready(standing, NOW))


def test_an_event_loop_that_does_not_move_is_neither_alive_nor_ready() -> None:
    standing = replace(JUDGING, at=NOW - STUCK_S - 1)
    assert "event loop" in not_alive(standing, NOW)[0]
    assert "event loop" in not_ready(standing, NOW)[0]


def test_a_poll_loop_that_does_not_come_round_is_not_ready() -> None:
    standing = replace(JUDGING, polled_at=NOW - STUCK_S - 1)
    assert not_alive(standing, NOW) == []
    assert "no poll" in not_ready(standing, NOW)[0]


def test_what_does_not_become_durable_makes_not_ready() -> None:
    assert not_ready(replace(JUDGING, unsaved_since=NOW - UNSAVED_S + 1), NOW) == []
    assert "not durable" in not_ready(replace(JUDGING, unsaved_since=NOW - UNSAVED_S - 1), NOW)[0]


def test_lag_in_seconds_grows_while_the_event_loop_is_stuck() -> None:
    since = time.time() - 100
    registry = CollectorRegistry()
    standing = replace(
        JUDGING, at=time.monotonic() - 50, lanes=(LaneStanding(3, 7, since, 0), LaneStanding(4, 0, None, 0))
    )
    registry.register(Gauges(lambda: standing))
    assert registry.get_sample_value("loopwarden_lag_records", {"partition": "3"}) == 7
    assert 100 <= (registry.get_sample_value("loopwarden_lag_seconds", {"partition": "3"}) or 0) < 200
    assert registry.get_sample_value("loopwarden_lag_seconds", {"partition": "4"}) == 0
    assert 50 <= (registry.get_sample_value("loopwarden_event_loop_age_seconds") or 0) < 150
    assert registry.get_sample_value("loopwarden_ready") == 0


def test_before_the_broker_told_where_a_partition_ends_no_lag_is_claimed() -> None:
    registry = CollectorRegistry()
    registry.register(Gauges(lambda: replace(JUDGING, lanes=(LaneStanding(0, None, None, 2),))))
    assert registry.get_sample_value("loopwarden_lag_records", {"partition": "0"}) is None
    assert registry.get_sample_value("loopwarden_runs_held", {"partition": "0"}) == 2


class ALane:
    """What a look needs of a lane."""

    def __init__(self, *, next_offset: int, checkpointed: int, newest_append_time: int) -> None:
        self.partition = 0
        self.next_offset, self.checkpointed = next_offset, checkpointed
        self.newest_append_time = newest_append_time
        self.runs: list[Any] = []
        self.states = self
        self.rewrite: set[bytes] = set()


def look(lookout: Lookout, lane: Any, end: int, told_at: float | None = None) -> LaneStanding:
    ends = {0: End(end, time.time() if told_at is None else told_at)}
    lookout.look(Phase.judging, [lane], ends, polled_at=None, recovery_remaining=0, rebalances=0, detectors_on=None)
    return lookout.standing.lanes[0]


def test_the_age_of_what_waits_is_that_of_the_newest_judged_while_behind() -> None:
    hour_ago = time.time() - 3600
    lane = ALane(next_offset=10, checkpointed=10, newest_append_time=int(hour_ago * 1000))
    found = look(Lookout(), lane, 50)
    assert found.lag == 40
    assert found.behind_since == pytest.approx(hour_ago, abs=0.01)


def test_a_record_after_an_idle_hour_waits_since_the_last_look_and_no_longer() -> None:
    lane, lookout = ALane(next_offset=10, checkpointed=10, newest_append_time=1000), Lookout()
    before = time.time()
    assert look(lookout, lane, 10).behind_since is None
    behind_since = look(lookout, lane, 11).behind_since
    assert behind_since is not None and behind_since >= before


def test_a_partition_of_which_nothing_was_judged_yet_waits_since_the_first_look() -> None:
    lane, lookout = ALane(next_offset=0, checkpointed=0, newest_append_time=0), Lookout()
    first = look(lookout, lane, 5).behind_since
    assert first is not None
    assert look(lookout, lane, 6).behind_since == first


def test_where_the_broker_does_not_answer_records_may_wait_since_it_last_did() -> None:
    lane, lookout = ALane(next_offset=10, checkpointed=10, newest_append_time=1000), Lookout()
    minute_ago = time.time() - 60
    found = look(lookout, lane, 10, told_at=minute_ago)
    assert (found.lag, found.behind_since) == (0, minute_ago)
    assert any("no fetch" in reason for reason in not_ready(lookout.standing, time.monotonic()))
    assert look(lookout, lane, 10).behind_since is None
    assert not_ready(lookout.standing, time.monotonic()) == []


def test_a_checkpoint_counts_from_its_freeze_and_for_its_partitions_only() -> None:
    lane, lookout = ALane(next_offset=10, checkpointed=10, newest_append_time=0), Lookout()
    look(lookout, lane, 10)
    assert lookout.standing.unsaved_since is None
    lane.next_offset = 20
    look(lookout, lane, 20)
    since = lookout.standing.unsaved_since
    assert since is not None
    lookout.checkpoint_completed([1], since + 5)
    look(lookout, lane, 20)
    assert lookout.standing.unsaved_since == since
    lookout.checkpoint_completed([0], since + 5)
    look(lookout, lane, 20)
    assert lookout.standing.unsaved_since == since + 5


def test_the_endpoint_answers_from_a_thread_with_the_reasons() -> None:
    port, now = free_port(), time.monotonic()
    standings = [Standing(at=now, phase=Phase.judging, polled_at=now)]
    serve("127.0.0.1", port, CollectorRegistry(), lambda: standings[-1])
    assert ask(port, "/healthz") == ask(port, "/readyz") == (200, {"ok": True})
    standings.append(replace(standings[0], at=now - 2 * STUCK_S))
    for path in ("/healthz", "/readyz"):
        status, body = ask(port, path)
        assert status == 503
        assert body["ok"] is False
        assert "event loop" in body["reasons"][0]
    assert ask(port, "/anything-else")[0] == 404


def test_a_port_that_is_taken_is_a_setting_that_is_wrong() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SettingsError, match=r"LOOPWARDEN_METRICS_PORT: must be a free port of 127.0.0.1, got"):
            serve("127.0.0.1", taken.getsockname()[1], CollectorRegistry(), Standing)


def test_a_worker_is_alive_while_it_waits_for_a_broker_and_stops_when_asked(installation: Any) -> None:
    port = free_port()
    worker = installation.start_worker(
        LOOPWARDEN_METRICS_PORT=str(port), LOOPWARDEN_BOOTSTRAP_SERVERS=f"127.0.0.1:{free_port()}"
    )
    installation.until(lambda: ask(port, "/healthz") == (200, {"ok": True}))
    status, body = ask(port, "/readyz")
    assert status == 503
    assert Phase.waiting.value in body["reasons"][0]
    assert worker.stop() == 0, worker.log


def test_a_worker_is_ready_once_it_judges_and_not_when_its_port_is_taken(installation: Any) -> None:
    port = free_port()
    installation.start_worker(LOOPWARDEN_METRICS_PORT=str(port))
    installation.until(lambda: ask(port, "/readyz") == (200, {"ok": True}))
    second = installation.start_worker(LOOPWARDEN_METRICS_PORT=str(port))
    assert second.exit_code() == 1
    assert "LOOPWARDEN_METRICS_PORT: must be a free port" in second.log
    assert "Traceback" not in second.log

"""`loopwarden replay` and `loopwarden export` against a real broker and a real worker, and from files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..worker.conftest import STRICT, Installation, histories, installation, repeated_call  # noqa: TID252 - no package
from .conftest import Ran

__all__ = ["histories", "installation"]

# kafka-python leaves a socket behind where it is closed while it asks for its metadata again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LAX = {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 5, "criticalThreshold": 9}}}

Loopwarden = Callable[..., Ran]


@pytest.fixture
def loopwarden(run: Loopwarden, installation: Installation) -> Loopwarden:
    """Run a command that needs the cluster."""
    return lambda *arguments: run(*arguments, "--broker", installation.servers, "--prefix", installation.topics.prefix)


def summary(ran: Ran) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(ran.out.splitlines()[-1])
    assert told["kind"] == "summary"
    return told


def counts(ran: Ran) -> tuple[int, int, int, int]:
    told = summary(ran)
    return told["same"], told["missing"], told["extra"], told["changed"]


def test_what_a_worker_published_is_the_same_and_a_run_goes_through_a_file(
    installation: Installation,
    loopwarden: Loopwarden,
    run: Loopwarden,
    histories: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    installation.apply(LAX)
    for number, event in enumerate(histories[:1000]):
        installation.publish(event)
        if number == 500:
            installation.apply(STRICT)
    for number in range(12):
        installation.publish(repeated_call("looping", number))
    installation.publish_bytes(b"no event", key=b"looping", partition=0)
    installation.start_worker()
    installation.wait_until_judged()
    published = len({(verdict.run_id, verdict.verdict_id) for _, verdict in installation.verdicts()})
    groups_before = groups(installation)

    everything = loopwarden("replay", "--json")
    assert (everything.code, counts(everything)) == (0, (published, 0, 0, 0)), everything
    assert summary(everything)["not_compared"] == {}
    assert summary(everything)["dead_letters"]["undecodable"] == 1

    file = tmp_path / "looping.jsonl"
    exported = loopwarden("export", "--run", "looping", "-o", str(file))
    assert exported.code == 0, exported.err
    recorded = [verdict for _, verdict in installation.verdicts() if verdict.run_id == "looping"]
    judged = run("judge", str(file), "--json")
    assert "left out" not in judged.err, "what an export holds beside events is no loss"
    assert [json.loads(line) for line in judged.out.splitlines()] == [as_json(verdict) for verdict in recorded]
    from_file = run("replay", "--from-file", str(file), "--json")
    assert (from_file.code, counts(from_file)) == (0, (len(recorded), 0, 0, 0)), from_file

    by_policy = loopwarden("replay", "--run", "looping", "--policy", lax_file(tmp_path))
    assert by_policy.code == 1
    assert "extra " in by_policy.out
    assert "judged by the policy given" in by_policy.err

    absent = loopwarden("replay", "--run", "no-such-run")
    assert absent.code == 2
    assert "holds nothing of it" in absent.err
    assert groups(installation) == groups_before
    installation.workers[-1].stop()

    installation.publish(repeated_call("later", 0))
    installation.producer.flush()
    unjudged = loopwarden("replay")
    assert unjudged.code == 0
    assert "1 record that the worker has not judged yet" in unjudged.err


def as_json(verdict: Any) -> dict[str, Any]:
    from loopwarden_schemas.codec import verdict_json

    value: dict[str, Any] = json.loads(verdict_json(verdict))
    return value


def groups(installation: Installation) -> set[str]:
    """The consumer groups that the cluster knows, but for those of other tests."""
    from loopwarden.client import admin_client

    with admin_client(installation.servers) as admin:
        ids = {group["group_id"] for group in admin.list_groups()}
    return {each for each in ids if each.startswith(installation.topics.prefix) or not re.match(r"t[0-9a-f]{8}-", each)}


def test_a_log_whose_beginning_is_gone_is_named_and_never_a_difference(
    installation: Installation, loopwarden: Loopwarden, tmp_path: Path
) -> None:
    from loopwarden.client import admin_client

    installation.apply(LAX)
    for at in range(12):
        installation.publish(repeated_call("cut", at))
    installation.start_worker()
    installation.wait_until_judged()
    assert loopwarden("replay").code == 0
    partition = installation.partition("cut")
    with admin_client(installation.servers) as admin:
        from kafka import TopicPartition

        admin.delete_records({TopicPartition(installation.topics.events.name, partition): 3})

    cut = loopwarden("replay", "--run", "cut")
    assert cut.code == 2, cut
    assert "1 run that began before what is read of the log: cut" in cut.err
    file = tmp_path / "cut.jsonl"
    written = loopwarden("export", "--run", "cut", "-o", str(file))
    assert written.code == 1
    assert "not whole: 1 run that began before what is read of the log: cut" in written.err

    # Its `policy.applied` is gone, too, while it is in force: the worker's changelog knows.
    started = {"type": "run.started", "event_id": "s", "run_id": "cut-2", "ts": 0}
    other = next(f"run-{at}" for at in range(100) if installation.partition(f"run-{at}") == partition)
    installation.publish({**started, "run_id": other})
    for at in range(12):
        installation.publish(repeated_call(other, at))
    installation.wait_until_judged()
    known = loopwarden("replay", "--run", other, "--json")
    assert known.code == 0, known
    assert counts(known)[0] > 0

    # One that may have been applied in the part that is gone, and that nobody saw: nothing is said of runs under it.
    installation.archive_policy(STRICT)
    unknown = loopwarden("replay", "--run", other)
    assert unknown.code == 2
    assert "under a policy of which the log does not tell any more" in unknown.err
    tried = loopwarden(
        "what-if", "--policy", lax_file(tmp_path), "--against", lax_file(tmp_path), "--run", other, "--json"
    )
    assert summary(tried)["changes"]["blocked"]["as before"] == 1


def lax_file(folder: Path) -> Path:
    file = folder / "lax.json5"
    file.write_text(json.dumps(LAX))
    return file


def test_a_file_without_recorded_verdicts_is_refused(run: Loopwarden, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(json.dumps({"type": "run.started", "event_id": "e", "run_id": "r", "ts": 1}))

    ran = run("replay", "--from-file", file)

    assert ran.code == 2
    assert "must hold recorded verdicts" in ran.err


def exported_file(folder: Path, *, says: int, more: str = "") -> Path:
    """A file of `loopwarden export` that holds one event, and says how many it holds."""
    told = {"type": "run.exported", "run_id": "r", "partition": 0, "events": says, "judged_events": says}
    event = {"type": "run.started", "event_id": "e", "run_id": "r", "agent_id": "docs", "ts": 1}
    file = folder / "exported.jsonl"
    file.write_text(f"{json.dumps(told)}\n{json.dumps(event)}\n{more}")
    return file


def test_a_file_that_lost_events_is_never_the_same(run: Loopwarden, tmp_path: Path) -> None:
    assert run("replay", "--from-file", exported_file(tmp_path, says=1)).code == 0

    cut = run("replay", "--from-file", exported_file(tmp_path, says=2))

    assert cut.code == 2
    assert "not compared: 1 run that lost events in the file: it says itself that there were more: r" in cut.err


def test_a_line_that_cannot_be_read_is_told_by_the_exit_code(run: Loopwarden, tmp_path: Path) -> None:
    ran = run("replay", "--from-file", exported_file(tmp_path, says=1, more='{"type": "verdict.recorded"}\n'))

    assert ran.code == 1
    assert "line 3" in ran.err


def test_an_agent_that_nothing_is_of_is_named(run: Loopwarden, tmp_path: Path) -> None:
    file = exported_file(tmp_path, says=1)

    assert run("replay", "--from-file", file, "--agent", "docs").code == 0
    ran = run("replay", "--from-file", file, "--agent", "dosc")

    assert ran.code == 2
    assert "agent dosc:" in ran.err and "holds no run of it" in ran.err


@pytest.mark.parametrize(
    "command", [("replay",), ("export", "--all"), ("what-if", "--policy", "recommended"), ("tune",)]
)
def test_times_between_which_nothing_lies_are_refused(run: Loopwarden, command: tuple[str, ...]) -> None:
    ran = run(*command, "--since", "24h", "--until", "48h")

    assert ran.code == 2
    assert "--until: must be after --since" in ran.err


@pytest.mark.parametrize("arguments", [("export",), ("export", "--run", "r", "--all")])
def test_an_export_needs_either_runs_or_all(run: Loopwarden, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


def test_a_time_that_is_none_is_refused(run: Loopwarden) -> None:
    ran = run("replay", "--since", "yesterday")

    assert ran.code == 2
    assert "--since: must be a time" in ran.err

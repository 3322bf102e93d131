"""`policy apply`, `policy status` and `policy show` on a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, append_policy, archived, read_archive, write_applied
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.topics import Topics

pytestmark = pytest.mark.parametrize("topics", [3], indirect=True)


@pytest.fixture
def connection(broker: LocalBroker, topics: Topics) -> Connection:
    return Connection(broker.bootstrap_servers, topics.prefix)


@pytest.fixture
def policy(run: Callable[..., Any], connection: Connection) -> Callable[..., Any]:
    def policy(*arguments: str | Path, stdin: bytes = b"") -> Any:
        cluster = ("--broker", connection.bootstrap_servers, "--prefix", connection.topic_prefix)
        return run("policy", *arguments, *cluster, stdin=stdin)

    return policy


def _in_force(policy: Callable[..., Any]) -> tuple[int, list[int | None]]:
    ran = policy("status", "--json")
    return ran.code, [orjson.loads(line)["number"] for line in ran.out.splitlines()]


def test_an_applied_policy_is_shown_in_every_partition_with_who_and_why(
    policy: Callable[..., Any], strict: Path
) -> None:
    assert _in_force(policy) == (0, [None] * 3)
    assert "no policy was ever applied; the defaults: detectors off" in policy("status").out
    ran = policy("apply", strict, "--why", "first policy", "--by", "Ada")
    assert (ran.code, ran.out) == (
        0,
        "policy 0 is in force in all 3 partitions, for the runs that begin from now on\n",
    )
    assert _in_force(policy) == (0, [0] * 3)
    told = "in force: policy 0, detectors on (warn at 4, block at 8); applied by Ada: first policy"
    assert told in policy("status").out
    shown = policy("show")
    assert orjson.loads(shown.out)["tools"]["loopDetection"]["criticalThreshold"] == 8
    assert "by Ada: first policy" in shown.err


def test_a_wrong_policy_is_refused_with_file_line_and_path_and_the_one_in_force_stays(
    policy: Callable[..., Any], strict: Path, tmp_path: Path
) -> None:
    policy("apply", strict, "--why", "right")
    wrong = tmp_path / "wrong.json5"
    wrong.write_text('{\n  tools: { loopDetection: {\n    warningThreshold: "ten" } },\n}')
    ran = policy("apply", wrong, "--why", "wrong")
    assert ran.code == 1
    assert f'tools.loopDetection.warningThreshold: must be a positive integer, got "ten" ({wrong}, line 3)' in ran.err
    assert "the policy was refused: what is in force stays" in ran.err
    assert _in_force(policy) == (0, [0] * 3)
    assert policy("show", "1").code == 2


def test_applied_again_after_a_failure_it_completes_what_is_missing(
    policy: Callable[..., Any], strict: Path, tmp_path: Path, connection: Connection
) -> None:
    former = tmp_path / "former.json5"
    former.write_text("{ tools: { loopDetection: { enabled: false } } }")
    policy("apply", former, "--why", "former")
    value = {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 4, "criticalThreshold": 8}}}
    number = append_policy(
        connection, PolicyDocument.from_value(value), by="Ada", why="new", ts=1, log_ends={0: 1, 1: 1, 2: 1}
    )
    write_applied(connection, archived(read_archive(connection), number), [1], 1)
    assert _in_force(policy) == (1, [0, number, 0])
    assert f"policy {number}, the newest of the archive, is not seen in 2 partitions (0, 2)" in policy("status").err
    ran = policy("apply", strict, "--why", "again")
    assert (ran.code, ran.out) == (
        0,
        f"policy {number} was archived already; completed in 2 partitions where it was missing: 0, 2\n",
    )
    assert _in_force(policy) == (0, [number] * 3)
    assert f"policy {number} was archived by Ada with the reason 'new', and only completed now" in ran.err


def test_another_reason_for_the_policy_in_force_is_recorded(policy: Callable[..., Any], strict: Path) -> None:
    policy("apply", strict, "--why", "first", "--by", "Ada")
    again = policy("apply", strict, "--why", "first", "--by", "Ada")
    assert (again.out, again.err) == ("policy 0 is in force in all 3 partitions already\n", "")
    reviewed = policy("apply", strict, "--why", "reviewed in June", "--by", "Grace")
    assert reviewed.code == 0
    assert reviewed.out.startswith("policy 1 is in force in all 3 partitions: the same as policy 0, archived again")
    assert _in_force(policy) == (0, [1] * 3)
    assert "by Grace: reviewed in June" in policy("show").err
    assert "by Ada: first" in policy("show", "0").err


def test_a_policy_may_come_on_standard_input(policy: Callable[..., Any]) -> None:
    ran = policy("apply", "-", "--why", "test", stdin=b"{ tools: { loopDetection: { historySize: 40 } } }")
    assert ran.code == 0
    assert "leaves the detectors off" in ran.err
    assert orjson.loads(policy("show").out) == {"tools": {"loopDetection": {"historySize": 40}}}


def test_a_reason_is_needed(policy: Callable[..., Any], strict: Path) -> None:
    assert policy("apply", strict).code == 2
    ran = policy("apply", strict, "--why", " ")
    assert (ran.code, ran.err) == (2, "loopwarden: --why: must say a reason, got none\n")


def test_a_file_that_is_not_there_is_named(policy: Callable[..., Any], tmp_path: Path) -> None:
    ran = policy("apply", tmp_path / "absent.json5", "--why", "test")
    assert (ran.code, ran.err) == (2, f"loopwarden: {tmp_path}/absent.json5: there is no such file\n")


def test_an_empty_archive_has_nothing_to_show(policy: Callable[..., Any]) -> None:
    ran = policy("show")
    assert (ran.code, "the archive of policies is empty" in ran.err) == (2, True)

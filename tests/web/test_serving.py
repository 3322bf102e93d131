"""The live page's server, with a real broker and a worker: what it answers, to whom, and that it changes nothing."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.times import duration_ms
from loopwarden.serving import Listening, TokenMissing
from loopwarden.web import WEB

from .conftest import NOBODY, Served, publish_loop, serving


def test_what_is_published_is_seen_as_fleet_run_verdicts_and_policy(page: Served, judging: Any) -> None:
    publish_loop(judging, "team/loop 1", 6)
    fleet = page.until("/v1/fleet", lambda found: found["worst"] and found["worst"][0]["blocks"] == 1)
    assert fleet["worst"][0]["run_id"] == "team/loop 1"
    assert (fleet["live"], fleet["trouble"], fleet["worst"][0]["calls"]) == (1, None, 6)
    assert sum(minute["events"] for minute in fleet["minutes"]) == 12
    published = [verdict.verdict_id for _, verdict in judging.verdicts()]

    feed = page.until("/v1/verdicts", lambda found: len(found["verdicts"]) == len(published))
    assert [each["verdict"]["verdict_id"] for each in feed["verdicts"]] == published[::-1]
    only = page.json("/v1/verdicts?action=block&orders=true&text=LOOP")["verdicts"]
    assert [each["verdict"]["action"] for each in only] == ["block"]

    run = page.json("/v1/runs/team%2Floop%201")
    assert (len(run["cells"]), run["severity"], run["status"]) == (6, "block", "running")
    assert [each["verdict_id"] for each in run["verdicts"] if each["recorded"] and each["recomputed"]] == published

    # It grows as events arrive, and is the same as what the report draws of the whole log.
    publish_loop(judging, "team/loop 1", 3, first=6)
    judging.wait_until_judged()
    count = len(judging.verdicts())
    grown = page.until(
        "/v1/runs/team%2Floop%201",
        lambda found: len(found["cells"]) == 9 and sum(bool(each["recorded"]) for each in found["verdicts"]) == count,
    )
    reported = subprocess.run(
        [sys.executable, "-m", "loopwarden.cli", "report", "--run", "team/loop 1", "--format", "json"],
        capture_output=True,
        env=judging.environment(),
        check=True,
    )
    drawn = json.loads(reported.stdout)
    assert {**grown, "policies": None} == {**drawn, "policies": None}
    assert grown["policies"][0]["policy_digest"] == drawn["policies"][0]["policy_digest"]

    policy = page.json("/v1/policy")
    assert (policy["number"], [each["why"] for each in policy["archive"]]) == (0, ["test"])
    assert policy["archive"][0]["effective"]["warningThreshold"] == 2

    # Whoever has the newest answer is told so, and gets no second one.
    status, headers, _ = page.get("/v1/runs")
    again, _, content = page.get("/v1/runs", If_None_Match=headers["ETag"])
    assert (status, again, content) == (200, 304, b"")
    for path in ("/", "/runs", "/verdicts?action=warn", "/policy", "/runs/team%2Floop%201"):
        status, headers, content = page.get(path)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8"), content
        assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert page.get("/runs/nobody")[0] == page.get("/v1/runs/nobody")[0] == 404

    # It joined no group and wrote nothing: the worker's group is the only one.
    assert groups_of(judging.servers, judging.topics.prefix) == {judging.topics.app_id}
    assert page.stop() == 0


def groups_of(servers: str, prefix: str) -> set[str]:
    """The consumer groups that have to do with an installation, or with a page."""
    from loopwarden.client import admin_client

    with admin_client(servers) as admin:
        names = {each["group_id"] for each in admin.list_groups()}
    return {name for name in names if prefix in name or "web" in name}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("alone"), "--broker", NOBODY) as served:
        yield served


def test_while_the_broker_is_away_it_says_so_and_stays(alone: Served) -> None:
    health = alone.until("/healthz", lambda found: found["status"] == "broker_away")
    assert NOBODY in health["trouble"]
    assert "stands still" in alone.get("/")[2].decode()
    assert alone.json("/v1/fleet")["trouble"] == health["trouble"]
    for path in ("/policy", "/runs/x"):
        status, _, content = alone.get(path)
        assert (status, NOBODY in content.decode()) == (503, True)
    assert alone.get("/v1/policy")[0] == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(alone: Served, method: str) -> None:
    for path in ("/", "/v1/fleet", "/v1/runs/r", "/v1/policy"):
        assert alone.request(method, path)[0] == 405, path


def test_a_wrong_parameter_is_told_with_the_rule(alone: Served) -> None:
    status, _, content = alone.get("/v1/runs?limit=0")
    assert (status, json.loads(content)["field"]) == (422, "limit")
    assert alone.get("/v1/verdicts?action=bite")[0] == 422


def test_the_document_tells_every_route_and_each_answer_has_its_fields(alone: Served) -> None:
    document = alone.json("/openapi.json")
    told = {
        path: route["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for path, methods in document["paths"].items()
        for method, route in methods.items()
        if method == "get"
    }
    assert told == {
        "/v1/fleet": "FleetNow",
        "/v1/runs": "Runs",
        "/v1/runs/{run_id}": "Timeline",
        "/v1/verdicts": "Feed",
        "/v1/policy": "PolicyNow",
        "/healthz": "Health",
    }
    schemas = document["components"]["schemas"]
    for path in ("/v1/fleet", "/v1/runs", "/v1/verdicts", "/healthz"):
        assert alone.json(path).keys() == schemas[told[path]]["properties"].keys()


def test_the_document_says_who_may_come_in(alone: Served, start: Callable[..., Served]) -> None:
    guarded = start("--broker", NOBODY, LOOPWARDEN_WEB_TOKEN="t")
    given: list[dict[str, Any]] = [{"token": []}, {"password": []}]
    for served, needed in ((alone, [{}, *given]), (guarded, given)):
        document = served.json("/openapi.json")
        assert document["components"]["securitySchemes"] == {
            "token": {"type": "http", "scheme": "bearer"},
            "password": {"type": "http", "scheme": "basic"},
        }
        assert document["security"] == needed
        assert document["paths"]["/healthz"]["get"]["security"] == []


def test_it_ends_when_it_is_stopped_as_soon_as_it_listens(start: Callable[..., Served]) -> None:
    for _ in range(3):
        assert start("--broker", NOBODY).stop() == 0


def test_one_that_ends_leaves_the_socket_of_its_successor(start: Callable[..., Served], tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = start("--unix", str(path), "--broker", NOBODY)
    path.unlink()  # as a supervisor does that starts the next one before it ends this one
    second = start("--unix", str(path), "--broker", NOBODY)
    assert first.stop() == 0
    assert path.is_socket()
    assert second.stop() == 0
    assert not path.exists()


def test_another_sites_page_cannot_read_it_under_a_name_that_it_made_mean_loopback(alone: Served) -> None:
    assert alone.get("/v1/fleet", Host="evil.example:9098")[0] == 421


def test_beyond_loopback_it_needs_a_token() -> None:
    with pytest.raises(TokenMissing, match=r"--host 0\.0\.0\.0: .* see what every agent does.* LOOPWARDEN_WEB_TOKEN"):
        Listening.given(WEB, "0.0.0.0", environment={})


def test_with_a_token_programs_bring_it_as_bearer_and_browsers_as_a_password(
    start: Callable[..., Served], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    served = start("--token-file", str(tmp_path / "token"), "--broker", NOBODY)
    status, headers, _ = served.get("/")
    assert (status, headers["WWW-Authenticate"]) == (401, 'Basic realm="Loopwarden", charset="UTF-8"')
    password = base64.b64encode(b"anybody:s3cret").decode()
    assert served.get("/", Authorization=f"Basic {password}")[0] == 200
    assert served.get("/v1/fleet", Authorization="Bearer s3cret")[0] == 200
    for wrong in ("Bearer guess", "Basic !", f"Basic {base64.b64encode(b's3cret').decode()}", "s3cret"):
        assert served.get("/v1/fleet", Authorization=wrong)[0] == 401, wrong
    assert served.get("/static/live.js")[0] == 401
    assert served.get("/healthz")[0] == 200


def test_a_missing_extra_is_told_with_its_name() -> None:
    without = "import sys; sys.modules['uvicorn'] = None; from loopwarden.cli import main; main(['serve'])"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (
        2,
        "loopwarden: the live page needs uvicorn, which is not installed: pip install 'loopwarden[web]'\n",
    )


def test_a_length_of_time_that_is_none_is_told() -> None:
    assert duration_ms("--look-back", "15m") == 900_000
    with pytest.raises(Mistake, match=r"--look-back: must be a length of time as 90s, 15m, 24h or 7d, got 'soon'"):
        duration_ms("--look-back", "soon")

"""The plugin's own part, without OpenClaw around it: what it does when the sidecar does not answer."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from socket import create_server
from typing import Any

from .agent import HANG_S, PLUGIN
from .release import Release

PROGRAM = """
const { Runs } = await import(process.argv[1] + "/runs.js");
const { Sidecar } = await import(process.argv[1] + "/sidecar.js");
const log = [];
const logger = { info: (text) => log.push(text), warn: (text) => log.push(text) };
const runs = new Runs(new Sidecar({ url: process.argv[2], timeoutMs: 100 }, logger), logger);
const answers = [];
for (let number = 0; number < 5; number += 1) {
  const call = { toolName: "read", params: {}, toolCallId: `c${number}`, runId: "r" };
  answers.push((await runs.beforeCall(call, { sessionId: "s" })) ?? null);
}
console.log(JSON.stringify({ answers, log }));
process.exit(0);
"""


def five_calls(release: Release, url: str) -> Any:
    """What the plugin answers OpenClaw about five calls in a row, and what it logs."""
    command = [release.node, "--input-type=module", "--eval", PROGRAM, PLUGIN.as_uri(), url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_sidecar_that_hangs_holds_up_one_call_and_not_those_after_it(release: Release) -> None:
    with create_server(("127.0.0.1", 0)) as hanging:
        found = five_calls(release, f"http://127.0.0.1:{hanging.getsockname()[1]}")
        assert found["answers"] == [None] * 5
        assert len(found["log"]) == 1
        assert "no answer in 100 ms" in found["log"][0]
        hanging.setblocking(False)
        hanging.accept()[0].close()
        try:
            hanging.accept()
        except BlockingIOError:
            return
        raise AssertionError("it was asked again at once")


@contextmanager
def answering(*answers: dict[str, Any]) -> Iterator[tuple[str, list[bytes]]]:
    """A sidecar that gives these answers, one after the other, and then goes away; its URL, and what it is sent."""
    bodies: list[bytes] = []

    class InOrder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            answer = json.dumps(answers[len(bodies) - 1]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), InOrder)

    def serve() -> None:
        for _ in answers:
            server.handle_request()
        server.server_close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    thread.join()


ABORT = {"action": "abort", "message": "The run is ended.", "joined": True}
REFUSED = {"block": True, "blockReason": "The run is ended."}


def test_an_abort_that_was_told_stands_when_the_sidecar_goes_away(release: Release) -> None:
    with answering(ABORT) as (url, _):
        found = five_calls(release, url)
    assert found["answers"] == [REFUSED] * 5
    assert sum("no sidecar at" in line for line in found["log"]) == 1


def test_an_abort_that_was_told_stands_until_a_sidecar_that_began_again_knows_better(release: Release) -> None:
    reading = {"action": "allow", "message": None, "joined": False}
    with answering(ABORT, reading, reading, {**reading, "joined": True}, reading) as (url, _):
        found = five_calls(release, url)
    assert found["answers"] == [REFUSED] * 3 + [None] * 2


LARGE = """
const { Runs } = await import(process.argv[1] + "/runs.js");
const { Sidecar } = await import(process.argv[1] + "/sidecar.js");
const log = [];
const logger = { info: (text) => log.push(text), warn: (text) => log.push(text) };
const runs = new Runs(new Sidecar({ url: process.argv[2], timeoutMs: 20000, certain: 61 }, logger), logger);
for (const id of ["a", "b", "c"]) {
  await runs.beforeCall({ toolName: "read", params: {}, toolCallId: id, runId: "r" }, {});
  const text = (id === "c" ? "y" : "x").repeat(6 * 1024 * 1024);
  await runs.result({ toolCallId: id, result: { content: [{ type: "text", text }], details: { n: 1 } } });
}
console.log(JSON.stringify(log));
process.exit(0);
"""


def test_a_result_beyond_what_the_sidecar_reads_is_published_by_its_hash(release: Release) -> None:
    allow = {"action": "allow", "message": None, "joined": True, "note": None}
    with answering(*[allow] * 6) as (url, bodies):
        command = [release.node, "--input-type=module", "--eval", LARGE, PLUGIN.as_uri(), url]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        assert ended.returncode == 0, ended.stderr
    results = [json.loads(body)["result"] for body in bodies[1::2]]
    assert results[0] == results[1] != results[2]
    assert results[0]["details"] == {"n": 1} and results[0]["content"].startswith("sha256 ")
    # More than the sidecar waits it would refuse with each call.
    assert {json.loads(body)["certain"] for body in bodies} == {60}
    assert json.loads(ended.stdout) == ["loopwarden: certain: must be 0 to 60 seconds, got 61: it is 60"]

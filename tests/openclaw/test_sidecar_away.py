"""The plugin's own part, without OpenClaw around it: what it does when the sidecar does not answer."""

from __future__ import annotations

import json
import subprocess
import threading
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


def test_an_abort_that_was_told_stands_when_the_sidecar_goes_away(release: Release) -> None:
    class Once(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = json.dumps({"action": "abort", "message": "The run is ended."}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Once)
    answering = threading.Thread(target=lambda: (server.handle_request(), server.server_close()))
    answering.start()
    found = five_calls(release, f"http://127.0.0.1:{server.server_port}")
    answering.join()
    assert found["answers"] == [{"block": True, "blockReason": "The run is ended."}] * 5
    assert sum("no sidecar at" in line for line in found["log"]) == 1

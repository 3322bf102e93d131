"""A proxy in front of any MCP server that speaks over stdio: what a client starts instead of the server.

    python -m loopwarden.adapters.mcp_proxy --agent-id docs -- npx -y some-mcp-server

Lines pass through as they are, but for `tools/call`: a call that is blocked is answered here, and the server never
hears of it; a warning is one more text of the tool's result. One process is one run. It needs no library of MCP's.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Any, Final

from loopwarden.adapters.watched_runs import WatchedRun, WatchedRuns
from loopwarden.client.errors import WrongSetting
from loopwarden.client.settings import Connection
from loopwarden.gateway import Call, Gateway
from loopwarden.runner import Refusal, RunGuard

_NOT_FOUND: Final = 127
_CLOSE_S: Final = 1.0
"""How long the last events may wait for the broker: clients kill a server that does not end within two seconds."""

_UNKNOWN_TOOL_CODES: Final = (-32601, -32602)
"""With which servers answer a call of a tool that they do not have: method not found, invalid params."""


class Proxy:
    """One server's process and what its client asks of it."""

    def __init__(self, watched: WatchedRun, server: subprocess.Popen[bytes], client: IO[bytes]) -> None:
        self._watched = watched
        self._client = client
        assert server.stdin is not None and server.stdout is not None
        self._server, self._answers = server.stdin, server.stdout
        self._pending: dict[str, Call] = {}
        self._writing = threading.Lock()

    def carry_requests(self, requests: IO[bytes]) -> None:
        """Carry what the client says to the server, until the client ends."""
        try:
            for line in requests:
                for forwarded in self._request(line):
                    self._server.write(forwarded)
                    self._server.flush()
            self._server.close()
        except OSError:
            pass  # the server has ended, which the other thread sees

    def carry_answers(self) -> None:
        """Carry what the server says to the client, until the server ends."""
        for line in self._answers:
            self._tell_client(self._answer(line))

    def _request(self, line: bytes) -> list[bytes]:
        message = _message(line)
        # A list of requests was allowed in one version of MCP: each is asked about, and answered, by itself.
        if isinstance(message, list):
            return [kept for each in message for kept in self._request(_line(each))]
        if not isinstance(message, dict) or message.get("method") != "tools/call" or "id" not in message:
            return [line]
        asked = message.get("params")
        asked = asked if isinstance(asked, dict) else {}
        try:
            call = self._watched.start(str(asked.get("name", "")), asked.get("arguments") or {})
        except Refusal as refusal:
            # `resultType`: without it a client of MCP 2026-07-28 takes no result; older ones do not look at it.
            content = [{"type": "text", "text": str(refusal)}]
            result = {"resultType": "complete", "content": content, "isError": True}
            self._tell_client(_line({"jsonrpc": "2.0", "id": message["id"], "result": result}))
            return []
        self._pending[_key(message["id"])] = call
        return [line]

    def _answer(self, line: bytes) -> bytes:
        message = _message(line)
        if isinstance(message, list):
            return b"".join(self._answer(_line(each)) for each in message)
        if not isinstance(message, dict) or "method" in message or "id" not in message:
            return line
        call = self._pending.pop(_key(message["id"]), None)
        if call is None:
            return line
        result = message.get("result")
        if not isinstance(result, dict):
            self._watched.finish(call, error=_error(call, message.get("error")))
            return line
        content = result.get("content")
        content = content if isinstance(content, list) else []
        note = self._watched.note(call)
        if result.get("isError") is True:
            texts = [str(block.get("text", "")) for block in content if isinstance(block, dict)]
            self._watched.finish(call, error="\n".join(texts))
        else:
            # Everything but the `_meta`, where servers put times and ids.
            self._watched.finish(call, result={name: value for name, value in result.items() if name != "_meta"})
        if note is None:
            return line
        result["content"] = [*content, {"type": "text", "text": note}]
        return _line(message)

    def _tell_client(self, line: bytes) -> None:
        with self._writing:
            self._client.write(line)
            self._client.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proxy; return the server's exit status."""
    given = _parser().parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    try:
        connection = Connection.given(given.broker, given.prefix, properties_file=given.client_properties)
    except WrongSetting as error:
        print(f"loopwarden: {error}", file=sys.stderr)
        return 2
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        print(f"loopwarden: the MCP server cannot be started: {error}", file=sys.stderr)
        return _NOT_FOUND
    logging.basicConfig(format="loopwarden: %(message)s")  # on stderr, which clients keep as the server's log
    # A client that is done with a server closes its input, or sends it a signal, which is then meant for the server.
    signal.signal(signal.SIGTERM, lambda number, _: server.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ExitStack() as open_ones:
        gateway = Gateway(connection)
        open_ones.callback(gateway.close, _CLOSE_S)
        guard = open_ones.enter_context(RunGuard(gateway=gateway, certain=given.certain))
        runs = WatchedRuns(guard)
        watched = runs.begin(given.run_id, agent_id=given.agent_id, cause="mcp")
        proxy = Proxy(watched, server, sys.stdout.buffer)
        threading.Thread(target=proxy.carry_requests, args=(sys.stdin.buffer,), daemon=True).start()
        try:
            proxy.carry_answers()
        except BrokenPipeError:
            server.terminate()  # the client is gone
        status = server.wait()
        runs.end(watched.run.run_id, "done")
    return status if status >= 0 else 128 - status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loopwarden.adapters.mcp_proxy",
        description="Watches the tool calls that a client makes of an MCP server on stdio.",
    )
    parser.add_argument("--agent-id", help="chooses the agent's overlay of the policy")
    parser.add_argument("--run-id", help="the run that the calls belong to; default: a random one")
    parser.add_argument(
        "--certain",
        type=float,
        metavar="SECONDS",
        help="wait at most so long until what was done before is judged, so that no call escapes; default: do not wait",
    )
    parser.add_argument("--broker", help="HOST:PORT; default: LOOPWARDEN_BOOTSTRAP_SERVERS, else localhost:9092")
    parser.add_argument("--prefix", help="of the topics; default: LOOPWARDEN_TOPIC_PREFIX, else none")
    parser.add_argument("--client-properties", metavar="FILE", help="default: LOOPWARDEN_CLIENT_PROPERTIES, else none")
    parser.add_argument("command", nargs="+", help="the server's command and its arguments, after --")
    return parser


def _message(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # not ours to judge: it passes as it is


def _line(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _key(message_id: Any) -> str:
    return json.dumps(message_id)  # 1 and "1" are two ids


def _error(call: Call, error: Any) -> str:
    said = error if isinstance(error, dict) else {}
    text = str(said.get("message", "the server answered neither a result nor an error"))
    if said.get("code") in _UNKNOWN_TOOL_CODES and call.tool in text and "tool" in text.lower():
        return f"unknown tool: {call.tool}"
    return text


if __name__ == "__main__":
    sys.exit(main())

"""The proxy as a client starts it: a process in front of a real MCP server's, spoken to by FastMCP's client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from .conftest import HANG_S, Watched, run
from .test_fastmcp import LOOPED, PAGE, ask

SERVER = Path(__file__).with_name("mcp_server.py")
NOBODY = "127.0.0.1:9"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"path": "/x"}}}

ECHO = r"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": "same"}], "_meta": {"took": message["id"]}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if message["params"]["name"] == "nope":
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "Unknown tool: nope"}}
        print(json.dumps(answer), flush=True)
    else:
        print(line, end="", flush=True)
sys.exit(7)
"""
"""A server of few words, to see what passes as it is."""


def proxied(watched: Watched | None, *command: str, **options: str) -> list[str]:
    servers, prefix = (NOBODY, "") if watched is None else _place(watched)
    arguments = ["--broker", servers, "--prefix", prefix]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", value]
    return ["-m", "loopwarden.adapters.mcp_proxy", *arguments, "--", *command]


def _place(watched: Watched) -> tuple[str, str]:
    return watched.installation.servers, watched.installation.topics.prefix


def spoken(command: list[str], *lines: Any) -> tuple[int, list[str]]:
    """Say these lines at once; return the exit status and the lines that come back."""
    given = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([sys.executable, *command], input=given, capture_output=True, text=True, timeout=HANG_S)
    # A broker that is away is said there, and nothing else is.
    assert "broker" in done.stderr if NOBODY in command else done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_loop_is_warned_blocked_and_refused_in_front_of_a_real_server(watched: Watched) -> None:
    command = proxied(watched, sys.executable, str(SERVER), certain=str(HANG_S), agent_id="docs")

    async def by_client() -> list[str]:
        async with Client(StdioTransport(sys.executable, command, env=dict(os.environ))) as client:
            assert [tool.name for tool in await client.list_tools()] == ["read"]
            return await ask(client, 7)

    assert run(by_client()) == LOOPED
    watched.installation.until(lambda: watched.named("RunFinished"))
    events = watched.events()
    assert [type(event).__name__ for event in events] == [
        "RunStarted",
        *["ToolCallStarted", "ToolCallFinished"] * 4,
        *["ToolCallBlocked"] * 3,
        "RunFinished",
    ]
    assert {event.agent_id for event in events} == {"docs"}


def test_whatever_is_no_call_passes_as_it_is_and_the_servers_exit_status_too() -> None:
    odd = ['{"jsonrpc": "2.0",  "method":"x", "params": {"é": "\\ud800"}}\n', '{"id": 4, "result": 1e400}\n', "[]\n"]
    status, lines = spoken(
        proxied(None, sys.executable, "-c", ECHO.replace("json.loads(line)", "{}")), *odd, "no json\n"
    )
    assert status == 7
    assert [f"{line}\n" for line in lines] == [*odd[:2], "no json\n"]


def test_outcomes_leave_out_what_differs_each_time_and_name_unknown_tools(watched: Watched) -> None:
    unknown = {**CALL, "id": "1", "params": {"name": "nope"}}
    # In a list, as one version of MCP had it, each is a call of its own.
    status, lines = spoken(proxied(watched, sys.executable, "-c", ECHO), CALL, unknown, [{**CALL, "id": 2}])
    assert status == 7
    assert [json.loads(line)["id"] for line in lines] == [1, "1", 2]
    watched.installation.until(lambda: watched.named("RunFinished"))
    finished = watched.named("ToolCallFinished")
    assert [getattr(event, "error", None) or event.result for event in finished if event.tool == "nope"] == [
        "unknown tool: nope"
    ]
    assert [event.result for event in finished if event.tool == "read"] == [
        {"content": [{"type": "text", "text": "same"}]}
    ] * 2


def test_while_the_broker_is_away_every_call_reaches_the_server() -> None:
    calls = [{**CALL, "id": number} for number in range(6)]
    status, lines = spoken(proxied(None, sys.executable, "-c", ECHO), *calls)
    assert status == 7
    assert [json.loads(line)["id"] for line in lines] == list(range(6))


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--broker", "nowhere:x", "--", "true"], 2, "--broker"),
        (["--", "/no/such/server"], 127, "the MCP server cannot be started"),
        ([], 2, "command"),
    ],
)
def test_a_mistake_gets_a_line_and_no_traceback(arguments: list[str], status: int, said: str) -> None:
    command = [sys.executable, "-m", "loopwarden.adapters.mcp_proxy", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == status
    assert said in done.stderr and "Traceback" not in done.stderr


def test_the_command_on_the_page_is_the_proxys(judging: Any) -> None:
    (shown,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    entry = json.loads(shown)["mcpServers"]["files"]
    arguments = entry["args"][: entry["args"].index("--") + 1]
    assert entry["command"] == "python"
    command, environment = [sys.executable, *arguments, "true"], judging.environment()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")

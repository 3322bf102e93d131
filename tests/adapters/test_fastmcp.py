"""A FastMCP server asked by FastMCP's own client, in memory, on a broker and a worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP

from loopwarden.adapters.fastmcp import RUN_ID, LoopwardenMiddleware
from loopwarden.runner import RunGuard

from .conftest import HANG_S, Watched, program_of, run
from .mcp_server import read

PAGE = Path(__file__).parents[2] / "docs" / "adapters" / "mcp.md"
LOOPED = ["made", "made", "warned", "made", "blocked", "blocked", "ended"]


def server(guard: RunGuard, **options: Any) -> FastMCP:
    made: FastMCP = FastMCP("files")
    made.tool(read)
    made.add_middleware(LoopwardenMiddleware(guard, **options))
    return made


def told(result: Any) -> str:
    """What became of a call, in short."""
    text = "\n".join(block.text for block in result.content)
    if not result.is_error:
        return "warned" if "was called" in text else "made"
    return "blocked" if "This call is blocked" in text else "ended" if "run is ended" in text else text


async def ask(client: Any, times: int, path: str = "/etc/hosts", tool: str = "read", **options: Any) -> list[str]:
    results = [await client.call_tool(tool, {"path": path}, raise_on_error=False, **options) for _ in range(times)]
    return [told(result) for result in results]


def asked(made: FastMCP, times: int, mode: str = "auto", **options: Any) -> list[str]:
    async def by_client() -> list[str]:
        async with Client(made, mode=mode) as client:
            return await ask(client, times, **options)

    answer: list[str] = run(by_client())
    return answer


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_loop_is_warned_blocked_and_every_call_after_the_end_refused(watched: Watched, mode: str) -> None:
    assert asked(server(watched.guard, agent_id="docs"), 7, mode) == LOOPED
    events = watched.events()
    names = [type(event).__name__ for event in events]
    assert names == ["RunStarted", *["ToolCallStarted", "ToolCallFinished"] * 4, *["ToolCallBlocked"] * 3]
    assert {event.agent_id for event in events} == {"docs"}
    assert events[6].result == [{"type": "text", "text": "127.0.0.1 localhost"}]


def test_a_client_can_say_which_run_its_calls_belong_to(watched: Watched) -> None:
    made = server(watched.guard)
    assert asked(made, 4, meta={RUN_ID: f"{watched.before}-a"}) == LOOPED[:4]
    # Another run has a window of its own.
    assert asked(made, 1, meta={RUN_ID: f"{watched.before}-b"}) == ["made"]
    assert {event.run_id for event in watched.events()} == {f"{watched.before}-a", f"{watched.before}-b"}


def test_errors_and_unknown_tools_are_outcomes(watched: Watched) -> None:
    made = server(watched.guard)
    asked(made, 1, path="/missing")
    asked(made, 1, tool="nope")
    first, second = (event.error for event in watched.named("ToolCallFinished"))
    assert "/missing" in first["message"]
    assert second == "unknown tool: nope"


def test_while_the_broker_is_away_the_server_works_as_without(unwatched: RunGuard) -> None:
    assert asked(server(unwatched), 9) == ["made"] * 9


def test_the_program_on_the_page_runs(judging: Any) -> None:
    asks = """
import asyncio
from fastmcp import Client

async def ask():
    async with Client(server) as client:
        return await client.call_tool("read", {"path": "/x"})

print(asyncio.run(ask()).content[0].text)
"""
    program = f"def read(path: str) -> str:\n    return path\n\n{program_of(PAGE)}{asks}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=judging.environment(), capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["/x"]), done.stderr

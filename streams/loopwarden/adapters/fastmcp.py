"""Middleware for MCP servers written with FastMCP: `server.add_middleware(LoopwardenMiddleware())`.

A server sees calls, but neither where the agent's run begins nor where it ends. Its run is what the client says in
`_meta` of the request (`loopwarden/run_id`), else the client's session, else, on stdio and in memory, where a server
serves one client, the server itself. An HTTP client that names neither is not watched: one run of all clients together
would make loops out of what different agents do.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from loopwarden.adapters.errors import MissingExtra
from loopwarden.adapters.watched_runs import WatchedRun, WatchedRuns
from loopwarden.runner import Refusal, RunGuard

try:
    from fastmcp.exceptions import NotFoundError
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import ToolResult
    from mcp.types import CallToolRequestParams, TextContent
except ImportError as missing:
    raise MissingExtra("mcp", missing) from missing

RUN_ID: Final = "loopwarden/run_id"
"""In a request's `_meta`: the run that the call belongs to."""

logger = logging.getLogger("loopwarden.adapters.fastmcp")


class LoopwardenMiddleware(Middleware):
    """Watches the tool calls that a server is asked for.

    A call that is blocked is not made: the client gets the verdict's message as the tool's error. A warning is one more
    text of the tool's result. After an abort every call of the run is refused; a server cannot end an agent.
    """

    def __init__(self, guard: RunGuard | None = None, *, agent_id: str | None = None) -> None:
        """Begin.

        Args:
            guard: With its gateway; default: one of its own, on the broker that the environment names.
            agent_id: Chooses the agent's overlay of the policy.
        """
        self._runs = WatchedRuns(guard)
        self._agent_id = agent_id
        self._own_run: WatchedRun | None = None
        self._said = False

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        """Ask, make the call, tell its outcome."""
        watched = self._run(context)
        if watched is None:
            return await call_next(context)
        try:
            call = await watched.start_async(context.message.name, context.message.arguments or {})
        except Refusal as refusal:
            return ToolResult([TextContent(type="text", text=str(refusal))], is_error=True)
        try:
            result = await call_next(context)
        except NotFoundError:
            watched.finish(call, error=f"unknown tool: {call.tool}")
            raise
        except BaseException as error:
            # Its text is all that the client will see of an exception, so the warning waits for the next result.
            watched.finish(call, error=error)
            raise
        note = await watched.note_async(call)
        content = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
        if result.is_error:
            watched.finish(call, error="\n".join(block.get("text", "") for block in content))
        else:
            watched.finish(call, result=content)
        if note is not None:
            result.content = [*result.content, TextContent(type="text", text=note)]
        return result

    def _run(self, context: MiddlewareContext[CallToolRequestParams]) -> WatchedRun | None:
        asked = None if context.fastmcp_context is None else context.fastmcp_context.request_context
        run_id = None if asked is None else _named(asked.meta)
        request = None if asked is None else asked.request
        session_id = None if request is None else request.headers.get("mcp-session-id")
        if run_id is None and request is not None and session_id is None:
            if not self._said:
                logger.warning("calls of HTTP clients without a session or %s in _meta are not watched", RUN_ID)
            self._said = True
            return None
        if run_id is None and session_id is None:
            # One of our own making has nothing to be read back, so that its first call does not wait.
            self._own_run = self._own_run or self._runs.begin(agent_id=self._agent_id, cause="mcp")
            return self._own_run
        run_id = run_id or f"mcp-{session_id}"
        return self._runs.known(run_id, agent_id=self._agent_id, session_id=session_id)


def _named(meta: Any) -> str | None:
    run_id = None if meta is None else dict(meta).get(RUN_ID)
    return run_id if isinstance(run_id, str) and run_id else None

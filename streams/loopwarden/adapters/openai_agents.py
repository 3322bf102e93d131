"""The OpenAI Agents SDK: tools that ask before they are called, and hooks that see the rest of a run.

    watch = Loopwarden()
    agent = Agent(name="docs", tools=watch.tools([read, write]))
    with watch.run(agent_id="docs") as hooks:
        result = Runner.run_sync(agent, "...", hooks=hooks)      # RunAborted

The SDK's hooks can see a call and end a run, but cannot answer in a tool's place; so a function tool is wrapped. Tools
that are not (the SDK's own, those of MCP servers) are only watched by the hooks.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from loopwarden.adapters.errors import MissingExtra
from loopwarden.adapters.watched_runs import WatchedRun, WatchedRuns
from loopwarden.gateway import Call
from loopwarden.runner import Answer, Refusal, RunAborted, RunGuard

try:
    from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, Tool
    from agents.items import ModelResponse, TResponseInputItem
    from agents.tool_context import ToolContext
except ImportError as missing:
    raise MissingExtra("openai-agents", missing) from missing

_current: Final[ContextVar[WatchedRun | None]] = ContextVar("loopwarden_run", default=None)
"""The run that the tools called here belong to. Tasks and threads that the SDK starts inherit it."""


class Loopwarden:
    """Watches runs of agents. A run that is begun inside of another's tool is one below it (`parent_run_id`)."""

    def __init__(self, guard: RunGuard | None = None) -> None:
        """Begin.

        Args:
            guard: With its gateway; default: one of its own, on the broker that the environment names.
        """
        self._runs = WatchedRuns(guard)

    @contextmanager
    def run(
        self, run_id: str | None = None, *, agent_id: str | None = None, session_id: str | None = None
    ) -> Iterator[LoopwardenHooks]:
        """Begin a run, and finish it at the end of the block; return the hooks for the SDK's `Runner`.

        `RunAborted` comes out of the `Runner` when the run must end, before the model's next turn.
        """
        parent = _current.get()
        parent_run_id = None if parent is None else parent.run.run_id
        watched = self._runs.begin(run_id, agent_id=agent_id, session_id=session_id, parent_run_id=parent_run_id)
        token = _current.set(watched)
        reason = "done"
        try:
            yield LoopwardenHooks(watched)
        except BaseException as error:
            reason = type(error).__name__
            raise
        finally:
            _current.reset(token)
            self._runs.end(watched.run.run_id, reason)

    def tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return the tools for an agent: function tools ask before they are called, others are as they were.

        A call that is blocked is not made: its output is the verdict's message. A warning stands at the end of the
        output. Outside of `run` the tools work as without.
        """
        return [_asking(each) if isinstance(each, FunctionTool) else each for each in tools]


class LoopwardenHooks(RunHooks[Any]):
    """The SDK's hooks for one run: they watch the tools that are not wrapped, and end the run."""

    def __init__(self, watched: WatchedRun) -> None:
        self._watched = watched
        self._calls: dict[str, Call] = {}

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._watched.run.run_id

    def compaction(self) -> None:
        """Say that the run's context was compacted, which the SDK does not tell."""
        self._watched.run.compaction()

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """An aborted run has no further turn."""
        self._end_if_aborted()

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Nor does it make the calls that the model has asked for meanwhile."""
        self._end_if_aborted()

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        """A call begins."""
        if isinstance(context, ToolContext) and not _is_asking(tool):
            call = self._watched.run.call(tool.name, _arguments(context.tool_arguments), call_id=context.tool_call_id)
            call.start()
            self._calls[context.tool_call_id] = call

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        """A call has returned."""
        call = self._calls.pop(context.tool_call_id, None) if isinstance(context, ToolContext) else None
        if call is not None:
            self._watched.finish(call, result=result)

    def _end_if_aborted(self) -> None:
        verdict = self._watched.aborted
        if verdict is not None:
            raise RunAborted(Answer("abort", "", verdict.message, verdict.verdict_id, verdict.reason))


@dataclasses.dataclass
class _Asking:
    """What a wrapped tool is called by."""

    tool: FunctionTool

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        watched = _current.get()
        if watched is None:
            return await self.tool.on_invoke_tool(context, arguments)
        try:
            call = await watched.start_async(self.tool.name, _arguments(arguments), context.tool_call_id)
        except Refusal as refusal:
            return str(refusal)  # of an aborted run, too: the hooks end it before the model's next turn
        try:
            output = await self.tool.on_invoke_tool(context, arguments)
        except BaseException as error:
            watched.finish(call, error=error)
            raise
        if not isinstance(output, str):
            watched.finish(call, result=output)  # images and files: a warning comes with the next text
            return output
        note = await watched.note_async(call)
        watched.finish(call, result=output)
        return output if note is None else f"{output}\n\n{note}"


def _asking(tool: FunctionTool) -> FunctionTool:
    return tool if _is_asking(tool) else dataclasses.replace(tool, on_invoke_tool=_Asking(tool))


def _is_asking(tool: Tool) -> bool:
    return isinstance(tool, FunctionTool) and isinstance(tool.on_invoke_tool, _Asking)


def _arguments(text: str) -> Any:
    """What the model gave, as values; as text where it is no JSON."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text

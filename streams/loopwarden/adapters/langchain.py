"""Middleware for LangChain agents, graphs of LangGraph: `create_agent(middleware=[LoopwardenMiddleware()])`.

One invocation of the agent is one run. Its id is part of the graph's state, so that an agent that is resumed elsewhere
from a checkpoint goes on with the same run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final

from typing_extensions import NotRequired

from loopwarden.adapters.errors import MissingExtra
from loopwarden.adapters.watched_runs import WatchedRun, WatchedRuns
from loopwarden.gateway import Call
from loopwarden.runner import Refusal, RunGuard

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
        ToolCallRequest,
        hook_config,
    )
    from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as missing:
    raise MissingExtra("langchain", missing) from missing

ToolAnswer = ToolMessage | Command[Any]

_SUMMARY: Final = "summarization"
"""How `SummarizationMiddleware` marks the message that stands for those it took away (`lc_source`)."""


class LoopwardenState(AgentState[Any]):
    """The agent's state, with the run that its calls belong to."""

    loopwarden_run_id: NotRequired[Annotated[str, PrivateStateAttr]]


class LoopwardenMiddleware(AgentMiddleware[LoopwardenState, Any, Any]):
    """Watches the tool calls of an agent.

    A call that is blocked is not made: the model gets the verdict's message as the tool's error. A warning comes with
    the tool's result. After an abort the agent ends before its next turn, with the message as its last one. Put it last
    in the list, so that it sees what the others made of a call.
    """

    state_schema = LoopwardenState

    def __init__(self, guard: RunGuard | None = None, *, agent_id: str | None = None) -> None:
        """Begin.

        Args:
            guard: With its gateway; default: one of its own, on the broker that the environment names.
            agent_id: Chooses the agent's overlay of the policy.
        """
        super().__init__()
        self.tools = []
        self._runs = WatchedRuns(guard)
        self._agent_id = agent_id

    def before_agent(self, state: LoopwardenState, runtime: Runtime[Any]) -> dict[str, Any]:
        """The run begins."""
        info = runtime.execution_info
        session_id = None if info is None else info.thread_id
        watched = self._runs.begin(agent_id=self._agent_id, session_id=session_id)
        return {"loopwarden_run_id": watched.run.run_id}

    def after_agent(self, state: LoopwardenState, runtime: Runtime[Any]) -> None:
        """The run ends."""
        if "loopwarden_run_id" in state:
            self._runs.end(state["loopwarden_run_id"], "done")

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: LoopwardenState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """An aborted run has no further turn."""
        watched = self._run(state)
        verdict = None if watched is None else watched.aborted
        if verdict is None:
            return None
        about = {"verdict_id": verdict.verdict_id, "reason": verdict.reason}
        return {"jump_to": "end", "messages": [AIMessage(verdict.message, additional_kwargs={"loopwarden": about})]}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Tell of a compaction, which is seen by the summary in what the model gets."""
        self._tell_compaction(self._run(request.state), request.messages)
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """`wrap_model_call` for asyncio."""
        self._tell_compaction(self._run(request.state), request.messages)
        return await handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        """Ask, make the call, tell its outcome."""
        watched = self._run(request.state)
        if watched is None:
            return handler(request)
        asked = request.tool_call
        try:
            call = watched.start(asked["name"], asked["args"], asked["id"])
        except Refusal as refusal:
            return _refused(request, refusal)
        try:
            answer = handler(request)
        except GraphBubbleUp:
            raise  # the graph pauses inside of the tool: the call has no outcome yet
        except BaseException as error:
            watched.finish(call, error=error)
            raise
        message = _message_of(answer, asked["id"])
        note = watched.note(call) if message is not None else None
        _tell_outcome(watched, call, request, message)
        return _with_note(answer, message, note)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        """`wrap_tool_call` for asyncio."""
        watched = self._run(request.state)
        if watched is None:
            return await handler(request)
        asked = request.tool_call
        try:
            call = await watched.start_async(asked["name"], asked["args"], asked["id"])
        except Refusal as refusal:
            return _refused(request, refusal)
        try:
            answer = await handler(request)
        except GraphBubbleUp:
            raise
        except BaseException as error:
            watched.finish(call, error=error)
            raise
        message = _message_of(answer, asked["id"])
        note = await watched.note_async(call) if message is not None else None
        _tell_outcome(watched, call, request, message)
        return _with_note(answer, message, note)

    def _run(self, state: Any) -> WatchedRun | None:
        run_id = state.get("loopwarden_run_id") if isinstance(state, dict) else None
        return None if run_id is None else self._runs.known(run_id, agent_id=self._agent_id)

    def _tell_compaction(self, watched: WatchedRun | None, messages: Sequence[AnyMessage]) -> None:
        first = messages[0] if messages else None
        if watched is None or first is None or first.additional_kwargs.get("lc_source") != _SUMMARY:
            return
        # The summary stays in the messages: with its id in the event's, the judge knows a redelivery.
        event_id = f"{watched.run.run_id}/compaction/{first.id}"
        watched.run.send("compaction", event_id=event_id, trigger="overflow", succeeded=True)


def _refused(request: ToolCallRequest, refusal: Refusal) -> ToolMessage:
    asked = request.tool_call
    return ToolMessage(str(refusal), tool_call_id=asked["id"], name=asked["name"], status="error")


def _message_of(answer: ToolAnswer, call_id: str | None) -> ToolMessage | None:
    if isinstance(answer, ToolMessage):
        return answer
    messages = answer.update.get("messages", ()) if isinstance(answer.update, dict) else ()
    return next((each for each in messages if isinstance(each, ToolMessage) and each.tool_call_id == call_id), None)


def _tell_outcome(watched: WatchedRun, call: Call, request: ToolCallRequest, message: ToolMessage | None) -> None:
    if message is None:
        watched.finish(call)  # a command to the graph alone: nothing that the model sees
    elif message.status != "error":
        watched.finish(call, result=message.content)
    elif request.tool is None:
        watched.finish(call, error=f"unknown tool: {call.tool}")
    else:
        watched.finish(call, error=message.content)


def _with_note(answer: ToolAnswer, message: ToolMessage | None, note: str | None) -> ToolAnswer:
    if note is None or message is None:
        return answer
    if isinstance(message.content, str):
        message.content = f"{message.content}\n\n{note}"
    else:
        message.content = [*message.content, {"type": "text", "text": note}]
    return answer

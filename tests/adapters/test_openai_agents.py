"""Agents of the OpenAI Agents SDK, with a scripted model of its own interface, on a broker and a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage, UserError, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from loopwarden.adapters.openai_agents import Loopwarden
from loopwarden.runner import RunAborted, RunGuard

from .conftest import Watched, program_of, run

PAGE = Path(__file__).parents[2] / "docs" / "adapters" / "openai-agents.md"
QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """A model that does not listen: it asks for the same again and again, then gives up."""

    def __init__(self, times: int, tool: str = "read", arguments: str = '{"path": "/etc/hosts"}') -> None:
        self.times, self.tool, self.arguments = times, tool, arguments
        self.asked = 0
        self.heard: list[str] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        if last.get("type") == "function_call_output":
            self.heard.append(str(last["output"]))
        self.asked += 1
        output: Any
        if self.asked <= self.times:
            call_id = f"call_{self.asked}"
            output = ResponseFunctionToolCall(
                type="function_call", name=self.tool, arguments=self.arguments, call_id=call_id
            )
        else:
            text = ResponseOutputText(type="output_text", text="I give up.", annotations=[])
            output = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def read(path: str) -> str:
    """Read a file."""
    if path == "/missing":
        raise FileNotFoundError(path)
    return "127.0.0.1 localhost"


def told(text: str) -> str:
    """What became of a call, in short."""
    kinds = {"This call is blocked": "blocked", "The run is ended": "ended", "was called": "warned"}
    return next((kind for words, kind in kinds.items() if words in text), "made")


async def ran(watch: Loopwarden, model: Scripted, tools: Any = None, **fields: Any) -> Any:
    agent = Agent(name="docs", model=model, tools=watch.tools([read]) if tools is None else tools)
    with watch.run(**fields) as hooks:
        return await Runner.run(agent, "go", hooks=hooks, run_config=QUIET, max_turns=20)


def test_a_loop_is_warned_blocked_and_ended(watched: Watched) -> None:
    model = Scripted(12)
    with pytest.raises(RunAborted, match="The run is ended") as aborted:
        run(ran(Loopwarden(watched.guard), model, agent_id="docs", session_id="s"))
    assert aborted.value.answer.reason == "block_ignored"
    heard = [told(text) for text in model.heard]
    assert heard[:5] == ["made", "made", "warned", "made", "blocked"]
    assert set(heard[5:]) <= {"blocked"}
    events = watched.events()
    names = [type(event).__name__ for event in events]
    assert names[:11] == ["RunStarted", *["ToolCallStarted", "ToolCallFinished"] * 4, *["ToolCallBlocked"] * 2]
    assert names[-1] == "RunFinished" and events[-1].reason == "aborted"
    assert {(event.agent_id, event.session_id) for event in events} == {("docs", "s")}
    assert (events[1].args, events[2].result) == ({"path": "/etc/hosts"}, "127.0.0.1 localhost")


def test_a_tool_that_is_not_wrapped_is_watched_and_its_loop_ended_after_a_compaction(watched: Watched) -> None:
    watch = Loopwarden(watched.guard)

    async def after_a_compaction() -> None:
        agent = Agent(name="docs", model=Scripted(19), tools=[read])
        with watch.run() as hooks:
            hooks.compaction()
            await Runner.run(agent, "go", hooks=hooks, run_config=QUIET, max_turns=20)

    # The hooks do not wait for certainty, so that the run may be some calls ahead of its verdict.
    try:
        run(after_a_compaction())
    except RunAborted as aborted:
        assert aborted.answer.reason == "compaction_loop_persisted"
    finished = watched.named("ToolCallFinished")
    assert len(finished) >= 3
    assert {event.result for event in finished} == {"127.0.0.1 localhost"}


def test_an_exception_is_an_outcome_as_the_model_sees_it_or_as_it_is_raised(watched: Watched) -> None:
    missing = '{"path": "/missing"}'
    watch = Loopwarden(watched.guard)
    run(ran(watch, Scripted(1, arguments=missing)))
    raising = function_tool(_missing, failure_error_function=None)
    with pytest.raises(UserError, match="/missing"):
        run(ran(watch, Scripted(1, tool=raising.name, arguments=missing), watch.tools([raising])))
    first, second = watched.named("ToolCallFinished")
    assert first.result.startswith("An error occurred while running the tool")
    assert second.error == {"name": "FileNotFoundError", "message": "/missing"}


def _missing(path: str) -> str:
    raise FileNotFoundError(path)


def test_an_agent_as_a_tool_is_a_run_below(watched: Watched) -> None:
    watch = Loopwarden(watched.guard)

    @function_tool
    async def read(path: str) -> str:
        """Let another agent read."""
        return str((await ran(watch, Scripted(1))).final_output)

    run(ran(watch, Scripted(1), watch.tools([read])))
    first, second = watched.named("RunStarted")
    assert second.parent_run_id == first.run_id


def test_tools_work_as_without_outside_of_a_run_and_while_the_broker_is_away(unwatched: RunGuard) -> None:
    watch = Loopwarden(unwatched)
    model = Scripted(9)
    assert run(ran(watch, model)).final_output == "I give up."
    assert [told(text) for text in model.heard] == ["made"] * 9
    outside = Agent(name="docs", model=Scripted(9), tools=watch.tools([read]))
    assert run(Runner.run(outside, "go", run_config=QUIET)).final_output == "I give up."


def test_a_tool_is_wrapped_once(unwatched: RunGuard) -> None:
    watch = Loopwarden(unwatched)
    (once,) = watch.tools([read])
    (twice,) = watch.tools([once])
    assert isinstance(once, FunctionTool) and twice is once and once.name == read.name


@pytest.mark.usefixtures("on_the_broker")
def test_the_program_on_the_page_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    exec(compile(program_of(PAGE), str(PAGE), "exec"), {"model": Scripted(12), "read": read})
    assert "The run is ended" in capsys.readouterr().out

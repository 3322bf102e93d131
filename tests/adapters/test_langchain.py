"""An agent of LangChain's own `create_agent`, with LangChain's own fake model, on a broker and a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from loopwarden.adapters.langchain import LoopwardenMiddleware
from loopwarden.runner import RunGuard

from .conftest import Watched, program_of, run

PAGE = Path(__file__).parents[2] / "docs" / "adapters" / "langchain.md"


class Scripted(GenericFakeChatModel):
    """LangChain's fake model, which can be given tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@tool
def read(path: str) -> str:
    """Read a file."""
    if path == "/missing":
        raise FileNotFoundError(path)
    return "127.0.0.1 localhost"


def calls(tool_name: str = "read", path: str = "/etc/hosts", start: int = 0) -> Iterator[AIMessage]:
    """What a model says that does not listen."""
    for number in range(start, start + 12):
        yield AIMessage("", tool_calls=[{"name": tool_name, "args": {"path": path}, "id": f"call_{number}"}])
    yield AIMessage("I give up.")


def agent(middleware: Any, says: Iterator[AIMessage], *more: Any, **options: Any) -> Any:
    return create_agent(Scripted(messages=says), [read], middleware=[*more, middleware], **options)


def told(answer: dict[str, Any]) -> list[str]:
    """What became of each call, in short; without the one, if any, by which the end was heard of."""
    became = []
    for message in answer["messages"]:
        if isinstance(message, ToolMessage) and not str(message.content).startswith("The run is ended"):
            text = str(message.content)
            kinds = {"This call is blocked": "blocked", "was called": "warned"}
            became.append(next((kind for words, kind in kinds.items() if words in text), "made"))
    return became


LOOPED = ["made", "made", "warned", "made", "blocked", "blocked"]
"""Then the second call that is blocked ends the run."""


def test_a_loop_is_warned_blocked_and_ended(watched: Watched) -> None:
    answer = agent(LoopwardenMiddleware(watched.guard, agent_id="docs"), calls()).invoke({"messages": ["go"]})
    assert told(answer) == LOOPED
    last = answer["messages"][-1]
    assert isinstance(last, AIMessage) and last.content.startswith("The run is ended")
    assert last.additional_kwargs["loopwarden"]["reason"] == "block_ignored"
    refused = [message for message in answer["messages"] if isinstance(message, ToolMessage)][5]
    assert refused.status == "error" and refused.name == "read"

    events = watched.events()
    names = [type(event).__name__ for event in events]
    assert names[:11] == ["RunStarted", *["ToolCallStarted", "ToolCallFinished"] * 4, *["ToolCallBlocked"] * 2]
    assert names[11:] in (["RunFinished"], ["ToolCallBlocked", "RunFinished"])
    assert {event.agent_id for event in events} == {"docs"}
    assert events[-1].reason == "aborted"
    # What the model was told with a result is no part of the result.
    assert {event.result for event in events[2:9:2]} == {"127.0.0.1 localhost"}


def test_it_is_the_same_for_asyncio(watched: Watched) -> None:
    middleware = LoopwardenMiddleware(watched.guard)
    answer = run(agent(middleware, calls()).ainvoke({"messages": ["go"]}))
    assert told(answer) == LOOPED
    assert answer["messages"][-1].content.startswith("The run is ended")


def test_each_invocation_is_a_run_and_a_thread_is_its_session(watched: Watched) -> None:
    says = iter([*list(calls())[:2], AIMessage("Done."), *list(calls(start=2))[:2]])
    built = agent(LoopwardenMiddleware(watched.guard), iter([*says, AIMessage("Done.")]), checkpointer=InMemorySaver())
    for _ in range(2):
        built.invoke({"messages": ["go"]}, {"configurable": {"thread_id": "t1"}})
    events = watched.events()
    assert {event.session_id for event in events} == {"t1"}
    assert len({event.run_id for event in events}) == 2
    assert [event.reason for event in events if hasattr(event, "reason")] == ["done", "done"]


def test_errors_and_unknown_tools_are_outcomes(watched: Watched) -> None:
    middleware = LoopwardenMiddleware(watched.guard)
    unknown = agent(middleware, iter([next(calls("nope")), AIMessage("Done.")]))
    assert "not a valid tool" in unknown.invoke({"messages": ["go"]})["messages"][2].content
    with pytest.raises(FileNotFoundError):
        agent(middleware, calls(path="/missing")).invoke({"messages": ["go"]})
    errors = [event.error for event in watched.named("ToolCallFinished")]
    assert errors == ["unknown tool: nope", {"name": "FileNotFoundError", "message": "/missing"}]


def test_a_summary_is_a_compaction_once(watched: Watched) -> None:
    summary = SummarizationMiddleware(
        Scripted(messages=iter(["what was said"] * 9)), trigger=("messages", 6), keep=("messages", 2)
    )
    says = iter([*list(calls())[:3], AIMessage("Done.")])
    agent(LoopwardenMiddleware(watched.guard), says, summary).invoke({"messages": [HumanMessage("go")]})
    compactions = watched.named("Compaction")
    assert {(event.trigger, event.succeeded) for event in compactions} == {("overflow", True)}
    assert len({event.event_id for event in compactions}) == 1


def test_while_the_broker_is_away_the_agent_works_as_without(unwatched: RunGuard) -> None:
    answer = agent(LoopwardenMiddleware(unwatched), calls()).invoke({"messages": ["go"]}, {"recursion_limit": 99})
    assert told(answer) == ["made"] * 12
    assert answer["messages"][-1].content == "I give up."


def test_a_guard_without_a_gateway_is_refused() -> None:
    with (
        RunGuard(bootstrap_servers="127.0.0.1:9") as guard,
        pytest.raises(ValueError, match="must come with the gateway"),
    ):
        LoopwardenMiddleware(guard)


@pytest.mark.usefixtures("on_the_broker")
def test_the_program_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program_of(PAGE), str(PAGE), "exec"), {"model": Scripted(messages=calls()), "tools": [read]})
    assert "The run is ended" in capsys.readouterr().out

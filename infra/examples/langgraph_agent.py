"""A LangGraph agent that loops: it is warned, then blocked, and goes on all the same until its run is ended.

    loopwarden up     # broker and worker on this machine; the rest in another terminal
    loopwarden policy apply infra/examples/looping-policy.json5 --why "an example"
    pip install 'loopwarden[langchain]'
    python infra/examples/langgraph_agent.py

Its model is LangChain's fake one, scripted not to listen: put your own in its place, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from loopwarden.adapters.langchain import LoopwardenMiddleware
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard

CERTAIN_S = 10.0
"""How long a call may wait for certainty: far longer than it takes, so that the example ends the same each time."""


class Stubborn(GenericFakeChatModel):
    """A model that asks for the same file again and again."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Stubborn:
        return self


def asks() -> Iterator[AIMessage]:
    for number in range(1, 21):
        yield AIMessage("", tool_calls=[{"name": "read", "args": {"path": "/etc/hosts"}, "id": f"call_{number}"}])
    yield AIMessage("I give up.")


def read(path: str) -> str:
    """Read a file. The model hopes that it says something else next time."""
    return "127.0.0.1 localhost"


def main() -> None:
    with Gateway() as gateway, RunGuard(gateway=gateway, certain=CERTAIN_S) as guard:
        watched = LoopwardenMiddleware(guard, agent_id="looping")
        agent = create_agent(Stubborn(messages=asks()), [read], middleware=[watched])
        answer = agent.invoke({"messages": ["Read /etc/hosts."]}, {"recursion_limit": 100})
    for message in answer["messages"]:
        if isinstance(message, ToolMessage):
            print("tool: ", " ".join(str(message.content).split()))
    print("agent:", answer["messages"][-1].content)


if __name__ == "__main__":
    main()

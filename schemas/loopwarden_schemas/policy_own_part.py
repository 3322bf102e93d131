"""What of a policy file is a policy: the rest of a whole OpenClaw configuration is none of our business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from loopwarden_schemas.policy import PolicyDocument, value_at

_OURS: Final = ("loopDetection", "loopwarden")


def own_part(document: PolicyDocument) -> PolicyDocument:
    """Return the document as it is archived: the blocks that are ours, and nothing of what else may stand beside them.

    A configuration may hold secrets, which have no place on a topic. Where there is nothing else, it is the same.
    """
    reduced: dict[str, Any] = {}
    if tools := _own_blocks(document.value):
        reduced["tools"] = tools
    agents = value_at(document.value, "agents", "list")
    own: list[dict[str, Any]] = []
    listed: list[object] = []
    for agent in agents if isinstance(agents, list) else ():
        agent_id = value_at(agent, "id")
        # Of an agent listed twice the first entry counts, also where it holds nothing of ours.
        if agent_id is not None and agent_id not in listed and (tools := _own_blocks(agent)):
            own.append({"id": agent_id, "tools": tools})
        listed.append(agent_id)
    if own:
        reduced["agents"] = {"list": own}
    return PolicyDocument.from_value(reduced)


def _own_blocks(value: object) -> dict[str, Any]:
    tools = value_at(value, "tools")
    return {name: tools[name] for name in _OURS if name in tools} if isinstance(tools, Mapping) else {}

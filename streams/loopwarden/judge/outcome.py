"""What an event of a call says, hashed: the signature and the outcome. (Reference, sections 2 and 3.)"""

from __future__ import annotations

import re
from typing import Final

from msgspec import UNSET

from loopwarden.judge.redelivery import identity
from loopwarden_schemas.digests import (
    digest,
    error_digest,
    id_hash,
    is_known_poll,
    normalise_tool,
    result_digest,
)
from loopwarden_schemas.structs import ToolCallEvent, ToolCallFinished

NO_ARGUMENTS: Final = digest(None)
"""The `args_hash` of absent arguments."""

_DIGEST: Final = re.compile("[0-9a-f]{32}")


class Hashed:
    """A call's event with its payloads and ids hashed."""

    __slots__ = ("args_hash", "call_id", "identity", "known_poll", "result", "tool", "unknown_tool")

    def __init__(self, tool: str, args_hash: str | None, known_poll: bool, call_id: int | None, identity: int) -> None:
        self.tool = tool
        self.args_hash = args_hash
        """None: neither arguments nor their hash were given."""
        self.known_poll = known_poll
        self.call_id = call_id
        self.identity = identity
        """See `redelivery.identity`."""
        self.result: str | None = None
        """32 hexadecimal digits. None: the result is void."""
        self.unknown_tool: int | None = None
        """Hash of the tool's name, where the error says that there is no such tool."""


def hash_call(event: ToolCallEvent) -> Hashed:
    """Return an event's signature and, for a `finished`, its outcome.

    Raises:
        NotCanonical: a payload has no canonical JSON.
    """
    tool = normalise_tool(event.tool)
    args = event.args
    call_id = None if event.call_id is None else id_hash(event.call_id.encode())
    who = identity(event, call_id)
    if args is UNSET:
        args = None
        hashed = Hashed(tool, event.args_hash, event.known_poll is True or is_known_poll(tool, None), call_id, who)
    else:
        hashed = Hashed(tool, digest(args), event.known_poll is True or is_known_poll(tool, args), call_id, who)
    if type(event) is ToolCallFinished:
        if event.error is not UNSET:
            hashed.result, unknown_tool = error_digest(event.error)
            hashed.unknown_tool = _name_hash(unknown_tool)
        elif event.result is not UNSET:
            hashed.result = result_digest(tool, args, event.result)
        elif event.result_hash is not None:
            hashed.result = _in_32_digits(event.result_hash)
            hashed.unknown_tool = _name_hash(event.unknown_tool)
    return hashed


def _name_hash(name: str | None) -> int | None:
    return None if name is None else id_hash(name.lower().encode())


def _in_32_digits(result_hash: str) -> str:
    # Outcomes are only compared with one another; in one size they keep the state small.
    return result_hash if _DIGEST.fullmatch(result_hash) else digest(result_hash)

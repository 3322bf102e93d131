"""From what happened to the bytes of an event: redacted, hashed or cut so that it can always be read."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from loopwarden.gateway.ids import new_id
from loopwarden.gateway.payloads import Payload, as_read, error_of, safe_name, safe_text, safe_tool
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.digests import error_digest, is_known_poll, normalise_tool, result_digest
from loopwarden_schemas.events import MAX_NAME_BYTES, MAX_RECORD_BYTES
from loopwarden_schemas.structs import Rejected

PayloadMode: TypeAlias = Literal["full", "hash"]
Part: TypeAlias = Literal["args", "result", "error"]

Redact: TypeAlias = Callable[[str, Part, Any], Any]
"""`redact(tool, part, value)` returns what may leave this process instead of the value, a copy that it may change."""

MAX_PAYLOAD_BYTES: Final = 400 * 1024
"""Arguments and a result of this size fit into one record with everything else."""

_IN_AN_OUTCOME: Final = 2
"""So much deeper than in its event a part of a result can lie in what is hashed of it."""

_MAX_TEXT: Final = 4096
"""Characters of `cause`, `reason`, `by`, `why` and `trigger`; nobody reads on, and the record is limited."""

_NAMES: Final = ("session_id", "agent_id", "call_id", "parent_run_id", "verdict_id")
_TEXTS: Final = ("cause", "reason", "trigger", "by", "why")
_OPTIONAL: Final = ("policy", "usage", "duration_ms", *_TEXTS)
"""What an event can do without, where it would be unreadable with it."""

_CALL_EVENTS: Final = ("tool_call.started", "tool_call.finished", "tool_call.blocked")

logger = logging.getLogger("loopwarden.gateway")


class Arguments(NamedTuple):
    """A call's tool and arguments as its events carry them.

    Attributes:
        tool: The name as sent.
        fields: `args`, or `args_hash` and `known_poll`.
        args_hash: As the judge computes it.
        value: The arguments; after redaction.
    """

    tool: str
    fields: dict[str, Any]
    args_hash: str
    value: Any


class Written(NamedTuple):
    """An event, ready to be sent."""

    event_id: str
    run_id: str
    record: bytes


class Writer:
    """Writes the events of one process.

    Attributes:
        source: A random id of this writer; on every event, with a counter.
        hashed: Payloads sent as hashes though `payload="full"`.
        failed: Events that had to leave something out to be readable.
    """

    def __init__(self, payload: PayloadMode, max_payload_bytes: int, redact: Redact | None) -> None:
        self.source = new_id()
        self.hashed = self.failed = 0
        self._hash_all = payload == "hash"
        self._max_bytes = max_payload_bytes
        self._redact = redact
        self._numbers = itertools.count(1)

    def arguments(self, tool: str, args: Any, known_poll: bool | None = None) -> Arguments:
        """Return a call's arguments as its events carry them.

        Args:
            tool: Its name.
            args: Whatever the agent passes.
            known_poll: True: a call that only asks for news, which the judge would not know of this tool.
        """
        tool = safe_tool(tool)
        payload, hash_it = self._counted(self._redacted(tool, "args", as_read(args)))
        polls = known_poll is True or is_known_poll(normalise_tool(tool), payload.value)
        if hash_it:
            fields: dict[str, Any] = {"args_hash": payload.digest}
            if polls:
                fields["known_poll"] = True
        else:
            fields = {"args": payload.value}
            if known_poll is True:
                fields["known_poll"] = True
        return Arguments(tool, fields, payload.digest, payload.value)

    def signature(self, tool: str, args: Any) -> tuple[str, str]:
        """Return the tool's name and the `args_hash` of a call, as its events will say them."""
        tool = safe_tool(tool)
        return tool, self._redacted(tool, "args", as_read(args))[0].digest

    def result(self, arguments: Arguments, result: Any) -> dict[str, Any]:
        """Return the fields of a result."""
        tool = normalise_tool(arguments.tool)
        payload, hash_it = self._counted(self._redacted(arguments.tool, "result", as_read(result, _IN_AN_OUTCOME)))
        if not hash_it and "args" in arguments.fields:
            return {"result": payload.value}
        digest = result_digest(tool, arguments.value, payload.value)
        # A result is hashed by what its arguments say, which the judge cannot see here.
        if not hash_it and digest == result_digest(tool, None, payload.value):
            return {"result": payload.value}
        return {} if digest is None else {"result_hash": digest}

    def error(self, arguments: Arguments, error: Any) -> dict[str, Any]:
        """Return the fields of an error: an exception, or what the tool said."""
        if issubclass(type(error), BaseException):  # never asks a proxy what it stands for
            error = error_of(error)
        payload, hash_it = self._counted(self._redacted(arguments.tool, "error", as_read(error, _IN_AN_OUTCOME)))
        if not hash_it:
            return {"error": payload.value}
        digest, unknown_tool = error_digest(payload.value)
        named = unknown_tool is not None and len(unknown_tool) <= MAX_NAME_BYTES
        return {"result_hash": digest, **({"unknown_tool": unknown_tool} if named else {})}

    def write(self, event: Mapping[str, Any], arguments: Arguments | None = None) -> Written:
        """Return an event as bytes that every reader of the contract can read.

        Args:
            event: `type`, `run_id` and further fields of the contract; `event_id` and `ts` are added where they are not
                given. `args`, `result` and `error` may be anything.
            arguments: Of the call, where they were asked for before.

        Raises:
            ValueError: no type or run of the contract, or fields that make it unreadable.
        """
        fields = {name: value for name, value in event.items() if value is not None or name in ("result", "error")}
        if fields.get("type") in _CALL_EVENTS:
            self._call(fields, arguments)
        run_id = safe_name(fields.get("run_id"))
        if run_id is None:
            raise ValueError("run_id: must name a run, got none")
        number = next(self._numbers)
        event_id = safe_name(fields.get("event_id")) or f"{self.source}-{number}"
        fields.setdefault("schema", 1)
        fields.setdefault("ts", int(time.time() * 1000))
        fields.update(event_id=event_id, run_id=run_id, source=self.source, seq=number)
        for name in fields.keys() & _NAMES:
            fields[name] = safe_name(fields[name])
        for name in fields.keys() & _TEXTS:
            fields[name] = safe_text(fields[name])[:_MAX_TEXT]
        if "policy" in fields:
            fields["policy"] = as_read(fields["policy"]).value
        # All of a call's fields are our own where its arguments were asked for, but for what it cost.
        is_ours = arguments is not None and "usage" not in fields
        return Written(event_id, run_id, self._readable(fields, is_ours))

    def _call(self, fields: dict[str, Any], arguments: Arguments | None) -> None:
        if arguments is None and ("args" in fields or "args_hash" not in fields):
            arguments = self.arguments(fields.get("tool", ""), fields.get("args"), fields.get("known_poll"))
        if arguments is None:
            fields["tool"] = safe_tool(fields.get("tool", ""))
            arguments = Arguments(fields["tool"], {}, fields["args_hash"], None)
        else:
            fields.pop("args", None)
            fields.update(arguments.fields, tool=arguments.tool)
        if "error" in fields:
            fields.pop("result", None)
            fields.update(self.error(arguments, fields.pop("error")))
        elif "result" in fields:
            fields.update(self.result(arguments, fields.pop("result")))

    def _readable(self, fields: dict[str, Any], is_ours: bool) -> bytes:
        try:
            record = encode_event(fields)
            problem = None if is_ours and len(record) <= MAX_RECORD_BYTES else _problem(record)
        except Exception as error:
            problem = f"{type(error).__name__}: {safe_text(error)}"
        if problem is None:
            return record
        self.failed += 1
        logger.warning("an event of type %s is sent without %s: %s", fields["type"], ", ".join(_OPTIONAL), problem)
        record = encode_event({name: value for name, value in fields.items() if name not in _OPTIONAL})
        problem = _problem(record)
        if problem is not None:
            raise ValueError(problem)
        return record

    def _redacted(self, tool: str, part: Part, payload: Payload) -> tuple[Payload, bool]:
        """Return the payload that may leave this process, and whether only as its hash."""
        if self._redact is not None:
            try:
                # A copy of its own: one that fails in the middle must not leave half of the payload changed.
                deeper = 0 if part == "args" else _IN_AN_OUTCOME
                payload = as_read(self._redact(tool, part, as_read(payload.value).value), deeper)
            except Exception as error:
                # What should have been hidden must not be seen.
                logger.warning("redact failed on the %s of a call, which is sent as a hash: %r", part, error)
                return payload, True
        return payload, self._hash_all or payload.size > self._max_bytes

    def _counted(self, payload: tuple[Payload, bool]) -> tuple[Payload, bool]:
        self.hashed += payload[1] and not self._hash_all
        return payload


def _problem(record: bytes) -> str | None:
    if len(record) > MAX_RECORD_BYTES:
        return f"a record must be at most {MAX_RECORD_BYTES} bytes, got {len(record)}"
    (read,) = decode_record(record)
    return read.detail if isinstance(read, Rejected) else None

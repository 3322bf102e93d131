"""A model that follows a script, behind the interface of OpenAI's chat completions, for a real OpenClaw to talk to."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

DONE: Final = "All done."

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class ToolCall:
    """The model asks for a call. `args` may depend on what it has been told."""

    tool: str
    args: dict[str, Any] | Callable[[Messages], dict[str, Any]]


@dataclass(frozen=True)
class Overflow:
    """The model says that its context is full; OpenClaw compacts and asks again."""


Step = ToolCall | Overflow


@dataclass
class ScriptedModel:
    """What the model is to do, and what it was told.

    Attributes:
        told: The text of each tool result that reached it, in order. (The results of one request at a time.)
        at_step: Called with the number of each step just before the model answers with it.
    """

    steps: list[Step]
    at_step: Callable[[int], None] = lambda step: None
    told: list[str] = field(default_factory=list)
    url: str = ""
    _next: int = 0

    def answer(self, request: dict[str, Any]) -> Step | str:
        """Return the next step; a request without tools asks for the summary of a compaction, and is none."""
        messages: Messages = request["messages"]
        if not request.get("tools"):
            return DONE
        if messages[-1]["role"] == "tool":
            self.told.append(_text(messages[-1]["content"]))
        if self._next == len(self.steps):
            return DONE
        self.at_step(self._next)
        step = self.steps[self._next]
        self._next += 1
        if isinstance(step, ToolCall) and callable(step.args):
            return ToolCall(step.tool, step.args(messages))
        return step

    @property
    def steps_taken(self) -> int:
        return self._next


@contextmanager
def serving(model: ScriptedModel) -> Iterator[ScriptedModel]:
    """Serve the model on loopback; its `url` is set."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(model))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _handler_of(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    numbers = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            step = model.answer(request)
            if isinstance(step, Overflow):
                message = "This model's maximum context length is 1000 tokens. Please reduce the messages."
                self._send(400, json.dumps({"error": {"message": message, "code": "context_length_exceeded"}}))
            else:
                self._send(200, "".join(_chunks(step, next(numbers))), "text/event-stream")

        def _send(self, status: int, body: str, content_type: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: OpenClaw's own log has every request."""

    return Handler


def _chunks(step: ToolCall | str, number: int) -> Iterator[str]:
    delta: dict[str, Any] = {"role": "assistant"}
    if isinstance(step, str):
        delta["content"] = step
    else:
        function = {"name": step.tool, "arguments": json.dumps(step.args)}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    finish = "stop" if isinstance(step, str) else "tool_calls"
    for choices, more in (
        ([{"index": 0, "delta": delta, "finish_reason": None}], {}),
        ([{"index": 0, "delta": {}, "finish_reason": finish}], {}),
        ([], {"usage": usage}),
    ):
        chunk = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 0, "model": "looper"}
        yield f"data: {json.dumps({**chunk, 'choices': choices, **more})}\n\n"
    yield "data: [DONE]\n\n"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())

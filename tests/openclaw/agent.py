"""One run of the real OpenClaw: a home and a workspace of its own, our plugin, and a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .model_server import ScriptedModel, serving
from .release import Release

PLUGIN: Final = Path(__file__).parents[2] / "infra" / "openclaw"

HANG_S: Final = 120


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        transcript: The session file that OpenClaw wrote.
        log: What it said.
        model: What the model did and was told.
    """

    transcript: Path
    log: str
    model: ScriptedModel

    @property
    def session_id(self) -> str:
        """The session's id, which its verdicts name."""
        return self.transcript.stem

    @property
    def results(self) -> list[dict[str, Any]]:
        """The tool results in order, as the transcript has them."""
        return results_in(self.transcript)

    def refused(self, reason: str | None = None) -> list[int]:
        """Which calls were refused: their places among all calls, from 0 on.

        Args:
            reason: Only those refused by OpenClaw itself (`tool-loop`) or by our plugin (`plugin-before-tool-call`).
        """
        return refused_in(self.transcript, reason)


def results_in(transcript: Path) -> list[dict[str, Any]]:
    """The tool results of a session file, in order."""
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message for message in messages if message["role"] == "toolResult"]


def refused_in(transcript: Path, reason: str | None = None) -> list[int]:
    """Which calls of a session file were refused: their places, from 0 on."""
    details = [result.get("details") or {} for result in results_in(transcript)]
    return [
        place
        for place, detail in enumerate(details)
        if detail.get("status") == "blocked" and reason in (None, detail.get("deniedReason"))
    ]


def run_agent(
    release: Release,
    home: Path,
    model: ScriptedModel,
    *,
    agent: str,
    loop_detection: dict[str, Any],
    plugin: dict[str, Any] | None,
) -> Ended:
    """Run OpenClaw until the model's script ends, or the run is ended.

    Args:
        home: Its HOME; the folder `workspace` in it is the agent's. Its name is the session's id.
        agent: The agent's id.
        loop_detection: OpenClaw's own, `tools.loopDetection`.
        plugin: Our plugin's configuration; None leaves it out.
    """
    (home / ".openclaw").mkdir(parents=True, exist_ok=True)
    with serving(model):
        configuration = _configuration(home, model.url, agent, loop_detection, plugin)
        (home / ".openclaw" / "openclaw.json").write_text(json.dumps(configuration))
        command = [str(release.node), str(release.script), "agent", "--local", "--agent", agent]
        ended = subprocess.run(
            [*command, "--session-id", home.name, "--message", "Go on.", "--json"],
            env={**os.environ, "HOME": str(home)},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
    log = ended.stdout + ended.stderr
    transcript = home / ".openclaw" / "agents" / agent / "sessions" / f"{home.name}.jsonl"
    assert transcript.exists(), log
    return Ended(transcript, log, model)


def workspace_in(home: Path) -> Path:
    """Make the agent's folder, with the two files that the scripts read."""
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text(f"what {name} says\n")
    return workspace


def _configuration(
    home: Path, model_url: str, agent: str, loop_detection: dict[str, Any], plugin: dict[str, Any] | None
) -> dict[str, Any]:
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    looper = {
        "id": "looper",
        "name": "looper",
        "contextWindow": 200_000,
        "maxTokens": 4096,
        "input": ["text"],
        "reasoning": False,
        "cost": free,
    }
    provider = {"baseUrl": model_url, "apiKey": "x", "api": "openai-completions", "models": [looper]}
    entry = {"enabled": True, "hooks": {"allowConversationAccess": True}, "config": plugin}
    return {
        "models": {"providers": {"mock": provider}},
        "agents": {
            "defaults": {"model": {"primary": "mock/looper"}, "workspace": str(home / "workspace")},
            "list": [{"id": agent, "default": True, "workspace": str(home / "workspace")}],
        },
        "tools": {"loopDetection": loop_detection},
        **({} if plugin is None else {"plugins": {"load": {"paths": [str(PLUGIN)]}, "entries": {"loopwarden": entry}}}),
    }

"""The examples as a reader of them runs them, on a broker and a worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwarden_schemas.policy_file import read_policy_file

from .conftest import ENDS_THE_RUN, HANG_S

EXAMPLES = Path(__file__).parents[2] / "infra" / "examples"


@pytest.fixture
def output(judging: Any, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What an example prints under the policy that it names."""
    judging.apply(read_policy_file(EXAMPLES / "looping-policy.json5").accepted().value)
    command = [sys.executable, str(EXAMPLES / request.param)]
    done = subprocess.run(command, env=judging.environment(), capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    yield done.stdout.splitlines()
    judging.apply(ENDS_THE_RUN)


def became(line: str) -> str:
    kinds = {"This call is blocked": "blocked", "The run is ended": "ended", "was called": "warned"}
    return next((kind for words, kind in kinds.items() if words in line), "made")


@pytest.mark.parametrize("output", ["langgraph_agent.py"], indirect=True)
def test_the_langgraph_agent_is_warned_then_blocked_then_ended(output: list[str]) -> None:
    assert [became(line) for line in output[:8]] == ["made"] * 3 + ["warned", "made"] + ["blocked"] * 3
    # Whether the end is heard of before the model's next call or by it, the agent says it and is done.
    assert {became(line) for line in output[8:]} == {"ended"}
    assert len(output) in (9, 10) and output[-1].startswith("agent: The run is ended")


@pytest.mark.parametrize("output", ["mcp_behind_proxy.py"], indirect=True)
def test_the_client_of_a_server_behind_the_proxy_is_warned_then_blocked_then_refused_all(output: list[str]) -> None:
    kinds = ["made"] * 3 + ["warned", "made"] + ["blocked"] * 3 + ["ended"] * 2
    assert [became(line) for line in output] == kinds
    assert ["refused" in line[:12] for line in output] == [kind in ("blocked", "ended") for kind in kinds]

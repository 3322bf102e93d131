from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from loopwarden_schemas.policy_file import read_policy_file

EXAMPLES = Path(__file__).resolve().parents[2] / "infra" / "examples"
HANG_S = 120


def test_the_looping_agent_is_warned_then_blocked_then_aborted(installation: Any) -> None:
    installation.apply(read_policy_file(EXAMPLES / "looping-policy.json5").accepted().value)
    installation.start_worker().wait_for_log("detectors are")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "looping_agent.py"],
        env=installation.environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    became = [line.split()[-1] if len(line) < 12 else line[3:10].strip() for line in done.stdout.splitlines()]
    assert became == ["made"] * 3 + ["warned"] + ["made"] + ["blocked"] * 3 + ["aborted"], done.stdout
    assert done.stderr == ""
    installation.wait_until_judged()
    abort = installation.verdicts()[-1][1]
    assert (abort.action, abort.reason, abort.obeyed, abort.disobeyed) == ("abort", "block_ignored", 3, 0)

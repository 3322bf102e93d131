"""The judge: a pure fold of a run's events into decisions and verdicts.

judge(state, event, policy) -> (state, decisions, verdicts)
"""

from __future__ import annotations

from loopwarden.judge.fold import Judged, judge
from loopwarden.judge.run_state import RunState
from loopwarden.judge.state_record import expires_at, freeze, thaw

__all__ = ["Judged", "RunState", "expires_at", "freeze", "judge", "thaw"]

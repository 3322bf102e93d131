"""What a runner is told about a call, as a value or as an exception.

Refusal
  CallBlocked   this call must not be made; others may
  RunAborted    the run must end
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["allow", "warn", "block", "abort"]


class Refusal(Exception):
    """A call must not be made. `answer` says why; its message is for the model."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


class CallBlocked(Refusal):
    """This call must not be made; others may."""


class RunAborted(Refusal):
    """The run must end."""


@dataclass(frozen=True)
class Answer:
    """About one call that is about to be made.

    Attributes:
        action: `allow`; `warn`: make it, a warning waits (`GuardedRun.note_after` gives its text with the result);
            `block`: refuse it and tell the model `message`; `abort`: end the run.
        message: Plain words that a model can act on; empty for `allow`.
        verdict_id: The verdict behind it; None for `allow`, and where only certainty was missing.
        reason: The verdict's stable code; `uncertain` where only certainty was missing; empty for `allow`.
        certain: Whether everything sent before was judged; False, too, where that was not asked for.
        call_id: The call's, on its events.
    """

    action: Action
    call_id: str
    message: str = ""
    verdict_id: str | None = None
    reason: str = ""
    certain: bool = False

    @property
    def allowed(self) -> bool:
        """Whether the call may be made."""
        return self.action in ("allow", "warn")

    def raise_for(self) -> Answer:
        """Return this answer where the call may be made.

        Raises:
            CallBlocked, RunAborted: it must not.
        """
        if self.action == "block":
            raise CallBlocked(self)
        if self.action == "abort":
            raise RunAborted(self)
        return self

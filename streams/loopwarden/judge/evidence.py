"""Which calls a verdict counted: the event ids of the newest ten, oldest first. (design.md, "Verdicts", `evidence`.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from loopwarden.judge.findings import EVIDENCE, Finding
from loopwarden.judge.window import Recorded, Signature, Window


def evidence(finding: Finding, window: Window, signature: Signature) -> list[str]:
    """Return the event ids of the calls that a finding counted, the call at hand left out."""
    if finding.detector == "unknown_tool_repeat":
        counted: Iterable[Recorded] = islice(reversed(window.calls), finding.count)
    elif finding.detector == "ping_pong":
        counted = islice(reversed(window.calls), finding.count - 1)
    elif finding.action == "warn" and finding.detector == "generic_repeat":
        counted = (call for call in reversed(window.calls) if call.signature is signature)
    else:
        counted = _streak(window, signature)
    return [call.event_id for call in islice(counted, EVIDENCE)][::-1]


def _streak(window: Window, signature: Signature) -> Iterator[Recorded]:
    with_outcome = (c for c in reversed(window.calls) if c.signature is signature and c.result is not None)
    return islice(with_outcome, signature.streak)

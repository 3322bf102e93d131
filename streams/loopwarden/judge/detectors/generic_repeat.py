"""Detector `generic_repeat` (policy: `detectors.genericRepeat`)."""

from __future__ import annotations

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


def generic_repeat(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """One call is repeated: blocked for identical outcomes, warned about for any. (Section 6, steps 5 and 6.)

    A known poll never comes here, even with its own detector off.
    """
    if signature.known_poll or not policy.generic_repeat:
        return None
    if signature.streak >= policy.critical_threshold:
        return Finding("generic_repeat", "block", signature.streak, policy.critical_threshold)
    if signature.calls >= policy.warning_threshold:
        return Finding("generic_repeat", "warn", signature.calls, policy.warning_threshold)
    return None

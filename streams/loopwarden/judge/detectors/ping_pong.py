"""Detector `ping_pong` (policy: `detectors.pingPong`)."""

from __future__ import annotations

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


def ping_pong(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """Two signatures alternate; blocked when neither ever returns anything new. (Section 6, step 4.)

    The warning comes for any alternation, progress or not.
    """
    if not policy.ping_pong:
        return None
    count = window.alternation(signature)
    if count >= policy.critical_threshold and window.tail_is_steady():
        return Finding("ping_pong", "block", count, policy.critical_threshold)
    if count >= policy.warning_threshold:
        return Finding("ping_pong", "warn", count, policy.warning_threshold)
    return None

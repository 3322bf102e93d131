"""Detector `known_poll_no_progress` (policy: `detectors.knownPollNoProgress`)."""

from __future__ import annotations

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


def known_poll_no_progress(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """A known polling tool keeps returning the same outcome. (Section 6, step 3.)"""
    if not (signature.known_poll and policy.known_poll_no_progress):
        return None
    if signature.streak >= policy.critical_threshold:
        return Finding("known_poll_no_progress", "block", signature.streak, policy.critical_threshold)
    if signature.streak >= policy.warning_threshold:
        return Finding("known_poll_no_progress", "warn", signature.streak, policy.warning_threshold)
    return None

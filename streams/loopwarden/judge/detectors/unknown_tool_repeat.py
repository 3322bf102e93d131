"""Detector `unknown_tool_repeat` (policy: `unknownToolThreshold`)."""

from __future__ import annotations

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


def unknown_tool_repeat(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """The newest calls all asked for one tool that does not exist; the whole tool is blocked. (Section 6, step 1.)

    There is no warning, and `detectors` does not govern it.
    """
    count = window.unknown_streak(signature.tool)
    if count >= policy.unknown_tool_threshold:
        return Finding("unknown_tool_repeat", "block", count, policy.unknown_tool_threshold, "tool")
    return None

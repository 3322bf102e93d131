"""Detector `global_circuit_breaker` (policy: `globalCircuitBreakerThreshold`)."""

from __future__ import annotations

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


def global_circuit_breaker(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """One signature made no progress for very long, whatever other detectors are on. (Section 6, step 2.)

    Despite its name it counts one tool with one set of arguments; `detectors` does not govern it.
    """
    if signature.streak >= policy.global_circuit_breaker_threshold:
        return Finding("global_circuit_breaker", "block", signature.streak, policy.global_circuit_breaker_threshold)
    return None

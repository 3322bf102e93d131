"""Which warnings were already published, so that a model is not told the same thing at every call.

A warning is keyed by what is repeated: for a poll the signature and its last outcome, for ping-pong the pair, for a
generic repeat the signature. It comes at the threshold and again after ten more; progress lets it come anew.
(design.md, "Verdicts", `warn`; reference, section 8.1.)
"""

from __future__ import annotations

from typing import Final

from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.digests import id_hash

MAX_KEYS: Final = 64
"""Keys remembered per run; the oldest goes first."""

EVERY: Final = 10
"""Calls from one warning to the next."""

WarningKey = tuple[str, int, int]
"""Detector, signature, and the other side of a ping-pong or the outcome of a poll, as 8-byte hashes."""


class Warnings:
    """The newest 64 keys, each with how far it was published."""

    __slots__ = ("published",)

    def __init__(self) -> None:
        self.published: dict[WarningKey, int] = {}

    def is_due(self, finding: Finding, window: Window, signature: Signature) -> bool:
        """Return whether this warning is to be published, and remember that it was."""
        key = _key(finding, window, signature)
        bucket = (finding.count - finding.threshold) // EVERY
        if bucket <= self.published.get(key, -1):
            return False
        self.published[key] = bucket
        if len(self.published) > MAX_KEYS:
            del self.published[next(iter(self.published))]
        return True

    def forget(self, signature: Signature) -> None:
        """A call of this signature was allowed: its next warning is a new one."""
        name = _name(signature)
        for key in [key for key in self.published if key[1] == name or (key[0] == "ping_pong" and key[2] == name)]:
            del self.published[key]


def _name(signature: Signature) -> int:
    return id_hash(f"{signature.tool} {signature.args_hash}".encode())


def _key(finding: Finding, window: Window, signature: Signature) -> WarningKey:
    name = _name(signature)
    if finding.detector == "ping_pong":
        first, second = sorted((name, _name(window.calls[-1].signature)))
        return ("ping_pong", first, second)
    if finding.detector == "known_poll_no_progress":
        return (finding.detector, name, id_hash((signature.newest_result or "").encode()))
    return (finding.detector, name, 0)

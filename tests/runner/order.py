"""One standing block, for tests to vary (`msgspec.structs.replace`)."""

from __future__ import annotations

from loopwarden_schemas.digests import digest
from loopwarden_schemas.structs import Verdict

SAME = {"path": "/x"}
"""The arguments of the call that it blocks."""

ORDER = Verdict(
    schema=1,
    verdict_id="v",
    begun=0,
    n=1,
    action="block",
    phase="order",
    detector="generic_repeat",
    run_id="run",
    session_id=None,
    agent_id=None,
    call_id=None,
    tool="read",
    args_hash=digest(SAME),
    scope="call",
    count=4,
    threshold=4,
    reason="generic_repeat",
    message="stop",
    event_id="e",
    evidence=[],
    policy_digest="",
    rules_version=1,
    ts=0,
)

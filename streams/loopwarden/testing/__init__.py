"""A policy tried on runs told in a line each, without a broker.

looping = run().call("read", {"path": "/x"}, result="the same").repeat(12)
judged(looping, "policy.json5").expect("block", "generic_repeat", at_call=9)

`run` tells what an agent did, `judged` folds it under a policy as a worker would, `expect` says what must have come of
it; where it did not, the failure lists what did, call by call. (No test framework is needed; `assert` is all it does.)
"""

from __future__ import annotations

from loopwarden.testing.judged import At, Judged, Policy, judged
from loopwarden.testing.runs import ToldRun, run

__all__ = ["At", "Judged", "Policy", "ToldRun", "judged", "run"]

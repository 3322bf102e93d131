"""What the log says of the policies in force: that the detectors are off, and how they are turned on. (design.md.)"""

from __future__ import annotations

import logging

from loopwarden.worker.policies import Policies

logger = logging.getLogger(__name__)


class Detectors:
    """Says once whether the loop detectors are on, and again whenever that changes."""

    def __init__(self) -> None:
        self.on: bool | None = None
        """What was said last."""

    def say(self, policies: Policies) -> None:
        """Say it of the newest policy of a partition."""
        number, document = policies.newest()
        on = any(document.resolve(agent).detectors_on for agent in (None, *document.overlays))
        if on == self.on:
            return
        self.on = on
        if on:
            logger.info("the loop detectors are on: policy %s", number)
            return
        guard = "only the post-compaction guard runs" if document.resolve(None).guard_on else "nothing is judged"
        logger.warning(
            "the loop detectors are off, %s: %s has not `enabled: true`; turn them on with"
            " `loopwarden policy apply FILE --why TEXT`, for example with infra/policies/recommended.json5",
            guard,
            "no policy was applied, and the default" if number is None else f"policy {number}",
        )

    def say_newest(self, partitions: list[Policies]) -> None:
        """Say it of the partition that has the newest policy: they get it one after another."""
        if partitions:
            self.say(max(partitions, key=lambda policies: -1 if (number := policies.newest()[0]) is None else number))

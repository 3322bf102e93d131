"""Reads the topics as they grow, while the load goes on, and has them checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from loopwarden.client import ClusterError, Connection, Record, following, read_archive
from loopwarden_schemas.topics import Topics

from .checks import Checks

_POLL_S: Final = 0.5


class NotJudged(Exception):
    """The workers do not get on."""


class Audit:
    """The checks, and how far each topic was read for them.

    Attributes:
        checks: What was read.
        passed: How often all was as it must be.
    """

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self.checks = Checks(topics.events.partitions)
        self.passed = 0
        self._connection = connection
        self._topics = topics
        self._next: dict[tuple[str, int], int] = {}

    def check(self, seconds: float) -> float:
        """Take a cut, wait until everything below it is judged, and compare; return how long it waited.

        Args:
            seconds: How long the workers have for it.

        Raises:
            NotJudged: they did not do it.
            GuaranteeBroken: what they did is wrong.
        """
        since = time.monotonic()
        cut = self._wait_until_judged(since + seconds)
        waited = time.monotonic() - since
        checks, topics = self.checks, self._topics
        for policy in read_archive(self._connection):
            checks.oracle.knows(policy.number, policy.document)
        self._read(topics.events.name, checks.oracle.take, cut)
        self._read(topics.verdicts.name, checks.take_verdict)
        self._read(topics.dead.name, checks.take_dead_letter)
        self._read(topics.changelog.name, checks.take_state)
        checks.check(cut)
        self.passed += 1
        return waited

    def check_states(self) -> None:
        """Hold the changelog to the oracle, when nothing flows and the workers have ended in order.

        Raises:
            GuaranteeBroken: a state is wrong.
        """
        self._read(self._topics.changelog.name, self.checks.take_state)
        self.checks.check_states()

    def _wait_until_judged(self, deadline: float) -> dict[int, int]:
        cut: dict[int, int] = {}
        while True:
            try:
                cut = cut or self._ends(self._topics.events.name)
                self._read(self._topics.progress.name, self.checks.take_progress)
            except ClusterError:
                # A broker that came back a moment ago.
                if time.monotonic() > deadline:
                    raise
            behind = {partition: end for partition, end in cut.items() if self.checks.judged[partition] < end}
            if cut and not behind:
                return cut
            if time.monotonic() > deadline:
                where = ", ".join(f"{each}: {self.checks.judged[each]} of {end}" for each, end in behind.items())
                raise NotJudged(f"not everything was judged in time: partition {where or 'unknown'}")
            time.sleep(_POLL_S)

    def _ends(self, topic: str) -> dict[int, int]:
        with following(self._connection, topic) as follower:
            return follower.ends()

    def _read(self, topic: str, take: Callable[[Record], None], ends: Mapping[int, int] | None = None) -> None:
        """Take what was not read yet, up to these ends (None: those of now), those of a partition in their order."""
        with following(self._connection, topic) as follower:
            until = follower.ends() if ends is None else ends
            ranges = {partition: (self._next.get((topic, partition), 0), end) for partition, end in until.items()}
            for polled in follower.read(ranges):
                for record in polled:
                    self._next[topic, record.partition] = record.offset + 1
                    take(record)

"""The policy in force and all that came before it, read from the archive and the log now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from loopwarden.client import ArchivedPolicy, Connection, InForce, policies_in_force, read_archive
from loopwarden_schemas.canonical import NotCanonical

_KEPT_S: Final = 5.0
"""Reading takes some connections: however many ask, it is done once in so many seconds."""


def policies_applicable(archive: Iterable[ArchivedPolicy]) -> list[ArchivedPolicy]:
    """Return those that the worker takes for policies: what has no canonical JSON has no digest to apply it by."""
    found = []
    for policy in archive:
        with suppress(NotCanonical):
            _ = policy.document.digest
            found.append(policy)
    return found


@dataclass(frozen=True)
class Policies:
    """What is known of the fleet's policies.

    Attributes:
        archive: All that were ever applied, oldest first.
        in_force: Which one is, in each partition.
    """

    archive: list[ArchivedPolicy]
    in_force: list[InForce]

    @property
    def number(self) -> int | None:
        """The one that is in force wherever anything is known; None: none, or not the same everywhere."""
        numbers = {each.number for each in self.in_force}
        return next(iter(numbers)) if len(numbers) == 1 else None


class PolicyReading:
    """Reads them when it is asked. May be called from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._read: Policies | None = None
        self._read_at = 0.0

    def policies(self) -> Policies:
        """Return them as they were some seconds ago at most.

        Raises:
            ClusterError: the broker or a topic is not there.
        """
        with self._lock:
            if self._read is None or time.monotonic() - self._read_at > _KEPT_S:
                archive = policies_applicable(read_archive(self._connection))
                self._read = Policies(archive, policies_in_force(self._connection, archive))
                self._read_at = time.monotonic()
            return self._read

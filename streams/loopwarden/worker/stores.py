"""Where the states of one partition are kept: in memory, or in RocksDB (`rocksdb_store`). Both hold the same.

A store is a copy of the changelog, which alone is trusted: a store that is lost is read from there again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple, Protocol

from msgspec import Struct

from loopwarden_schemas.state import state_position


class Entry(Struct, frozen=True, gc=False):
    """What the changelog holds for one key.

    Attributes:
        offset, index: Place in `agent-events` of the last event that the state has seen.
        value: The state record.
    """

    offset: int
    index: int
    value: bytes

    @property
    def place(self) -> tuple[int, int]:
        """Offset and index."""
        return self.offset, self.index

    @classmethod
    def of(cls, value: bytes) -> Entry:
        """Return the entry of a state record.

        Raises:
            UnknownStateVersion: this version of Loopwarden cannot read the state.
        """
        return cls(*state_position(value), value)


class Mark(NamedTuple):
    """How far a store is complete."""

    changelog: int
    """It holds what every record of the changelog below this offset says."""
    judged: int
    """The highest input offset that a state of it has seen; -1 without any."""


class Store(Protocol):
    """The states of one partition."""

    @property
    def mark(self) -> Mark | None:
        """How far it is complete; None: nothing is known of it."""

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key, or None."""

    def put(self, key: bytes, entry: Entry | None) -> None:
        """Hold an entry, or with None none any more."""

    def write(self, changes: Mapping[bytes, Entry | None], mark: Mark | None) -> None:
        """Put these and, unless it is None, the mark: all of it or nothing, whenever the process may end."""

    def keys(self) -> Iterator[bytes]:
        """Yield every key."""

    def scan(self, most: int) -> list[tuple[bytes, Entry]]:
        """Return at most so many entries: those after the last scan's; after the end it begins again."""

    def close(self) -> None:
        """Let go what the operating system gave. Nothing else is called any more."""


class Stores(Protocol):
    """Where the stores of a worker's partitions come from."""

    def open(self, partition: int) -> Store:
        """Open the store of a partition."""

    def discard(self, partition: int) -> None:
        """Remove what is kept of a partition, whose store is closed."""

    def close(self) -> None:
        """Let go what the operating system gave."""


class InMemory:
    """Stores that begin empty."""

    def open(self, partition: int) -> Store:
        return MemoryStore()

    def discard(self, partition: int) -> None:
        pass

    def close(self) -> None:
        pass


class MemoryStore:
    """States in memory: gone with the process, so that each start reads the whole changelog."""

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self._entries: dict[bytes, Entry] = {}
        self._left: Iterator[bytes] = iter(())
        self.get = self._entries.get
        """Return the entry of a key, or None."""

    def put(self, key: bytes, entry: Entry | None) -> None:
        if entry is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = entry

    def write(self, changes: Mapping[bytes, Entry | None], mark: Mark | None) -> None:
        for key, entry in changes.items():
            self.put(key, entry)
        if mark is not None:
            self.mark = mark

    def keys(self) -> Iterator[bytes]:
        return iter(self._entries)

    def scan(self, most: int) -> list[tuple[bytes, Entry]]:
        keys = list(islice(self._left, most))
        if not keys:
            # A copy, as entries come and go while it is used up.
            self._left = iter(list(self._entries))
            keys = list(islice(self._left, most))
        return [(key, self._entries[key]) for key in keys if key in self._entries]

    def close(self) -> None:
        pass

"""The tree that the entries of an OpenClaw or pi session make, and the branch of it that is the run."""

from __future__ import annotations

from loopwarden.importers.openclaw_entries import ROOT, Called, Entry


class SessionTree:
    """Entries in the order of the file, each below its parent.

    `parentId` names an entry, the session, or a tool call, and then the entry that made it. Version 1 has neither ids
    nor parents: each entry follows the one before it.
    """

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._entries: list[Entry] = []
        self._parents: list[int | None] = []
        self._by_id: dict[str, int] = {}
        self._by_call: dict[str, int] = {}

    def add(self, entry: Entry) -> bool:
        """Add the next entry. False: its parent is not there, the entry before it was taken."""
        index = len(self._entries)
        parent, found = self._parent(entry)
        self._entries.append(entry)
        self._parents.append(parent)
        if entry.id is not None:
            self._by_id[entry.id] = index
        for part in entry.parts:
            if isinstance(part, Called) and part.call_id is not None:
                self._by_call[part.call_id] = index
        return found

    def _parent(self, entry: Entry) -> tuple[int | None, bool]:
        before = len(self._entries) - 1 if self._entries else None
        if entry.parent is None:
            return before, True
        if entry.parent in (ROOT, self._session_id):
            return None, True
        found = self._by_id.get(entry.parent, self._by_call.get(entry.parent))
        return (before, False) if found is None else (found, True)

    def path(self) -> tuple[list[Entry], list[Entry]]:
        """Return the entries of the branch that ends in the last entry, and all the others, both in order."""
        on_path = set()
        index = len(self._entries) - 1 if self._entries else None
        while index is not None:
            # A parent stands before its child, so that this ends.
            on_path.add(index)
            index = self._parents[index]
        path = [entry for index, entry in enumerate(self._entries) if index in on_path]
        abandoned = [entry for index, entry in enumerate(self._entries) if index not in on_path]
        return path, abandoned

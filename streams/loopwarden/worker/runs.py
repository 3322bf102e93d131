"""The runs of one partition that are kept decoded; the rest is in the table. (design.md, "How the worker folds".)"""

from __future__ import annotations

from collections.abc import Callable

from loopwarden.judge import RunState, thaw
from loopwarden.worker.metrics import followed
from loopwarden.worker.recovery import States


class Held:
    """A run in memory.

    Attributes:
        state: None until its first event is judged.
        changed: Since the last freeze.
        followed: What became of its verdicts, as far as the metrics counted it.
        damaged: The judge failed in the middle of changing the state.
        frozen: Where a freeze wants the state as it is now, and has not encoded it yet.
    """

    __slots__ = ("changed", "damaged", "followed", "frozen", "key", "run_id", "state")

    def __init__(self, key: bytes, run_id: str, state: RunState | None) -> None:
        self.key = key
        self.run_id = run_id
        self.state = state
        self.changed = False
        self.damaged = False
        self.followed = followed(state)
        self.frozen: Callable[[Held], None] | None = None


class Runs:
    """Decoded runs by key, those used least recently first, counted by checkpoints.

    The order is brought up to date where the changed runs are taken, not at each event: that is often enough.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self._held: dict[bytes, Held] = {}
        self._changed: list[Held] = []
        self.get = self._held.get
        """Return the run that is held under a key, or None."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, key: bytes, run_id: str) -> Held:
        """Return a run that is not held, from the table, or as one without a past.

        Raises:
            UnknownStateVersion: its state was written by another version of Loopwarden.
        """
        entry = self._states.get(key)
        held = self._held[key] = Held(key, run_id, None if entry is None else thaw(entry.value))
        return held

    def change(self, held: Held) -> None:
        """Note that a run has a state that the table does not know."""
        held.changed = True
        self._changed.append(held)

    def take_changed(self) -> list[Held]:
        """Return the runs changed since the last time."""
        changed, self._changed = self._changed, []
        for held in changed:
            held.changed = False
            if self._held.pop(held.key, None) is held:
                self._held[held.key] = held
        return changed

    def drop(self, key: bytes) -> None:
        """Do not hold a run any longer."""
        self._held.pop(key, None)

    def is_changed(self, key: bytes) -> bool:
        """Whether a run has a state that was not taken yet."""
        held = self._held.get(key)
        return held is not None and held.changed

    def shrink(self, limit: int) -> None:
        """Hold at most so many, as far as the table knows their states. To be called when it knows those taken."""
        surplus = len(self._held) - limit
        if surplus <= 0:
            return
        unused: list[bytes] = []
        for key, held in self._held.items():
            if len(unused) == surplus:
                break
            if not held.changed:
                unused.append(key)
        for key in unused:
            del self._held[key]

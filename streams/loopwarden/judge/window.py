"""The newest calls of a run, and the counters that the detectors read.

The counters are kept while calls come, finish and leave, so that a decision costs the same at any window size; only an
outcome out of order, a removed call or a changed signature counts a stretch again. `tests/judge/recount.py` is the
plain model they are compared with. (Reference, sections 4 and 5.)
"""

from __future__ import annotations


class Signature:
    """A tool and its arguments, with what the window knows of them."""

    __slots__ = ("calls", "key", "known_poll", "newest_result", "outcomes", "streak")

    def __init__(self, key: tuple[str, str], known_poll: bool) -> None:
        self.key = key
        """Tool and `args_hash`."""
        self.known_poll = known_poll
        """Whether any call of it that was recorded said so: a decision must not depend on what the call at hand says,
        for the runner refuses by tool and arguments alone."""
        self.calls = 0
        """Calls of this signature in the window, pending or not (the reference's N)."""
        self.outcomes = 0
        """How many of them have an outcome."""
        self.streak = 0
        """How many of the newest outcomes, in call order, are identical (the reference's S)."""
        self.newest_result: str | None = None

    @property
    def tool(self) -> str:
        return self.key[0]

    @property
    def args_hash(self) -> str:
        return self.key[1]


class Recorded:
    """One call in the window; `result` is None while it is pending. Its id and an unknown tool's name are hashes."""

    __slots__ = ("call_id", "event_id", "lone", "result", "signature", "unknown_streak", "unknown_tool")

    def __init__(self, signature: Signature, call_id: int | None, event_id: str, lone: bool) -> None:
        self.signature = signature
        self.call_id = call_id
        self.event_id = event_id
        self.lone = lone
        """Made by a `finished` whose `started` has not been met yet."""
        self.result: str | None = None
        self.unknown_tool: int | None = None
        self.unknown_streak = 0
        """Contiguous calls up to this one, of its tool, that all failed with its unknown-tool name."""


class Window:
    """At most `size` newest calls of a run, oldest first."""

    __slots__ = (
        "calls",
        "lone",
        "pending",
        "previous_tail",
        "signatures",
        "size",
        "tail",
        "tail_conflicts",
        "tail_pending",
    )

    def __init__(self, size: int) -> None:
        self.size = size
        self.calls: list[Recorded] = []
        self.signatures: dict[tuple[str, str], Signature] = {}
        self.pending: list[Recorded] = []
        """The calls without an outcome, oldest first."""
        self.lone = 0
        """How many calls are lone."""
        self.tail = 0
        """Length of the longest suffix of calls in which two signatures alternate."""
        self.previous_tail = 0
        """Its length before the last call came, went or changed."""
        self.tail_pending = 0
        """How many calls of the tail have no outcome."""
        self.tail_conflicts = 0
        """How many calls of the tail have another outcome than the call before the previous one (the same side)."""

    def signature(self, tool: str, args_hash: str, known_poll: bool) -> Signature:
        """Return the signature; where the window holds no call of it, a new one with zero counters."""
        key = (tool, args_hash)
        return self.signatures.get(key) or Signature(key, known_poll)

    def alternation(self, signature: Signature) -> int:
        """Return how long the alternation would be with a call of this signature, 0 if it would not go on (A)."""
        tail = self.tail
        return tail + 1 if tail >= 2 and self.calls[-2].signature is signature else 0

    def tail_is_steady(self) -> bool:
        """Whether every call of the tail has an outcome and each side always the same one."""
        return not self.tail_pending and not self.tail_conflicts

    @property
    def ends_unknown(self) -> bool:
        """Whether the newest call asked for a tool that does not exist."""
        return bool(self.calls) and self.calls[-1].unknown_tool is not None

    def unknown_streak(self, tool: str) -> int:
        """Return how many of the newest calls, contiguously, are of this tool and failed with one unknown name (K)."""
        if not self.ends_unknown or self.calls[-1].signature.tool != tool:
            return 0
        return min(self.calls[-1].unknown_streak, len(self.calls))

    def record(self, signature: Signature, call_id: int | None, event_id: str, lone: bool = False) -> Recorded | None:
        """Append a pending call; return the call that left the window for it."""
        self.previous_tail = self.tail
        evicted = self._evict() if len(self.calls) == self.size else None
        call = Recorded(signature, call_id, event_id, lone)
        if lone:
            self.lone += 1
        if signature.calls == 0:
            self.signatures[signature.key] = signature
        signature.calls += 1
        calls = self.calls
        if not calls or calls[-1].signature is signature:
            self.tail = self.tail_pending = 1
            self.tail_conflicts = 0
        elif self.tail >= 2 and calls[-2].signature is signature:
            self.tail += 1
            self.tail_pending += 1
        else:
            self.tail = 2
            self.tail_pending = 2 if calls[-1].result is None else 1
            self.tail_conflicts = 0
        calls.append(call)
        self.pending.append(call)
        return evicted

    def _evict(self) -> Recorded:
        oldest = self.calls.pop(0)
        if self.tail > len(self.calls):
            self.tail -= 1
            if oldest.result is None:
                self.tail_pending -= 1
            elif self.tail >= 2 and _conflict(oldest, self.calls[1]):
                self.tail_conflicts -= 1
        if oldest.result is None:
            self.pending.pop(0)
        self._forget(oldest)
        return oldest

    def _forget(self, call: Recorded) -> None:
        if call.lone:
            self.lone -= 1
        signature = call.signature
        signature.calls -= 1
        if signature.calls == 0:
            del self.signatures[signature.key]
        if call.result is not None:
            signature.outcomes -= 1
            if signature.streak > signature.outcomes:
                signature.streak = signature.outcomes

    def find_pending(self, call_id: int | None, tool: str, args_hash: str) -> Recorded | None:
        """Return the newest pending call with the id or, where there is no id, of the signature."""
        for call in reversed(self.pending):
            if call_id is not None:
                if call.call_id == call_id:
                    return call
            elif call.signature.key == (tool, args_hash):
                return call
        return None

    def find_lone(self, call_id: int) -> Recorded | None:
        """Return the newest lone call with the id."""
        return next((call for call in reversed(self.calls) if call.lone and call.call_id == call_id), None)

    def meet(self, call: Recorded) -> None:
        """A lone call has met its `started`."""
        call.lone = False
        self.lone -= 1

    def complete(self, call: Recorded, result: str, unknown_tool: int | None) -> None:
        """Give a pending call its outcome."""
        if self.pending[-1] is call:
            self.pending.pop()
        else:
            self.pending.remove(call)
        call.result = result
        call.unknown_tool = unknown_tool
        signature = call.signature
        signature.outcomes += 1
        calls = self.calls
        index = len(calls) - 1 if call is calls[-1] else calls.index(call)
        is_newest = index == len(calls) - 1
        if not is_newest and any(c.signature is signature and c.result is not None for c in calls[index + 1 :]):
            self._recount_streak(signature)
        elif signature.outcomes > 1 and result == signature.newest_result:
            signature.streak += 1
        else:
            # With no other outcome in the window the newest result is a memory of calls that left it.
            signature.streak = 1
            signature.newest_result = result
        if is_newest:
            self.tail_pending -= 1
            if self.tail >= 3 and _conflict(calls[-3], call):
                self.tail_conflicts += 1
        elif index >= len(calls) - self.tail:
            self._complete_in_tail(index)
        if unknown_tool is not None:
            self._count_unknown(index)

    def _complete_in_tail(self, index: int) -> None:
        self.tail_pending -= 1
        call = self.calls[index]
        if index - 2 >= len(self.calls) - self.tail and _conflict(self.calls[index - 2], call):
            self.tail_conflicts += 1
        if index + 2 < len(self.calls) and _conflict(call, self.calls[index + 2]):
            self.tail_conflicts += 1

    def _count_unknown(self, index: int) -> None:
        # Calls after this one may have their unknown-tool outcome already: their streaks grow with it.
        for position in range(index, len(self.calls)):
            call = self.calls[position]
            if call.unknown_tool is None:
                return
            previous = self.calls[position - 1] if position else None
            goes_on = (
                previous is not None
                and previous.unknown_tool == call.unknown_tool
                and previous.signature.tool == call.signature.tool
            )
            call.unknown_streak = 1 + (previous.unknown_streak if previous is not None and goes_on else 0)

    def remove(self, call: Recorded) -> None:
        """Take a pending call out, as if it had never been made."""
        self.calls.remove(call)
        self.pending.remove(call)
        self._forget(call)
        self._recount_neighbours()

    def change_signature(self, call: Recorded, signature: Signature) -> None:
        """A pending call was executed with another tool or other arguments than announced."""
        self._forget(call)
        if call.lone:
            self.lone += 1
        call.signature = signature
        if signature.calls == 0:
            self.signatures[signature.key] = signature
        signature.calls += 1
        self._recount_neighbours()

    def _recount_streak(self, signature: Signature) -> None:
        signature.streak = 0
        signature.newest_result = None
        for call in reversed(self.calls):
            if call.signature is signature and call.result is not None:
                if signature.streak == 0:
                    signature.newest_result = call.result
                elif call.result != signature.newest_result:
                    return
                signature.streak += 1

    def _recount_neighbours(self) -> None:
        """Count again what depends on who stands beside whom: the alternating tail and the unknown-tool streaks."""
        calls = self.calls
        self.previous_tail = self.tail
        tail = min(len(calls), 1)
        if len(calls) >= 2 and calls[-1].signature is not calls[-2].signature:
            tail = 2
            while tail < len(calls) and calls[-tail - 1].signature is calls[-tail + 1].signature:
                tail += 1
        self.tail = tail
        in_tail = calls[len(calls) - tail :]
        self.tail_pending = sum(call.result is None for call in in_tail)
        self.tail_conflicts = sum(_conflict(a, b) for a, b in zip(in_tail, in_tail[2:], strict=False))
        for index in range(len(calls)):
            self._count_unknown(index)


def _conflict(earlier: Recorded, later: Recorded) -> bool:
    return earlier.result is not None and later.result is not None and earlier.result != later.result

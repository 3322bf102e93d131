"""Which dead letters a command is about."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Final, NamedTuple, get_args

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.overriding import milliseconds
from loopwarden_schemas.dead_letters import DeadLetter, Place
from loopwarden_schemas.structs import Reason

_LETTER: Final = re.compile(r"(\d{1,9})/(\d{1,18})/(\d{1,9})", re.ASCII)


class LetterId(NamedTuple):
    """A dead letter as a person names it: the topic is that of the installation."""

    partition: int
    offset: int
    element: int

    @classmethod
    def given(cls, text: str) -> LetterId:
        """Return what PARTITION/OFFSET/INDEX names.

        Raises:
            Mistake: it is none.
        """
        match = _LETTER.fullmatch(text.strip())
        if match is None:
            raise Mistake(
                f"LETTER: must be PARTITION/OFFSET/INDEX, such as 3/1402/0, got {text!r}: `loopwarden dead list`"
                " shows all there are"
            )
        return cls(*map(int, match.groups()))

    @classmethod
    def of(cls, place: Place) -> LetterId:
        """Return how the letter of this place is named."""
        return cls(*place[1:])

    def __str__(self) -> str:
        return f"{self.partition}/{self.offset}/{self.element}"


class Wanted(NamedTuple):
    """Which letters: these (none: all), with these reasons (none: any), of events appended since (ms)."""

    letters: frozenset[LetterId]
    reasons: frozenset[str]
    since: int

    @classmethod
    def given(cls, reasons: Iterable[str] | None, since: str | None, letters: Iterable[LetterId] = ()) -> Wanted:
        """Return what the options say.

        Raises:
            Mistake: one of them is wrong.
        """
        known = get_args(Reason)
        for reason in reasons or ():
            if reason not in known:
                raise Mistake(f"--reason: must be one of {', '.join(known)}, got {reason!r}")
        now = time.time_ns() // 1_000_000
        begin = 0 if since is None else now - milliseconds(since, "--since")
        return cls(frozenset(letters), frozenset(reasons or ()), begin)

    def includes(self, letter: DeadLetter) -> bool:
        """Whether a letter is one of them."""
        return (
            (not self.letters or LetterId.of(letter.place) in self.letters)
            and (not self.reasons or letter.reason in self.reasons)
            and letter.append_time >= self.since
        )

"""A connection that is made anew, after growing pauses, whatever goes wrong with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from loopwarden.client.connect import connected
from loopwarden.client.settings import Connection

_PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0)
"""The last one again and again: a broker that comes back is found soon, and one that is away is not pestered."""


class KeptConnection:
    """What a thread needs that talks to the broker for as long as its program runs.

    Attributes:
        established: Whether the broker is there, as far as is known; set by `note_established`.
        closing: Set by whoever wants `keep` to end.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        connection: Connection,
        settings: Mapping[str, Any],
        logger: logging.Logger,
        without_it: str,
    ) -> None:
        """`make` and `settings` are those of `connected`; `without_it` tells people what does not happen meanwhile."""
        self.established = False
        self.closing = threading.Event()
        self._make = make
        self._connection = connection
        self._settings = settings
        self._logger = logger
        self._without_it = without_it

    def note_established(self) -> None:
        """What the connection is for was found there: it counts as made, and the pauses begin anew after it."""
        self.established = True

    def keep(self, use: Callable[[Any], None], on_loss: Callable[[], None] = lambda: None) -> None:
        """Connect and `use` the client, again and again until `closing` is set.

        Args:
            use: Called with a client of kafka-python; returns when `closing` is set.
            on_loss: Called after each connection that failed, or could not be made.
        """
        failures = 0
        while not self.closing.is_set():
            try:
                with connected(self._make, self._connection, **self._settings) as client:
                    use(client)
            except Exception as error:  # noqa: PERF203 - the thread must outlive whatever happens to one connection
                if self.established or not failures:
                    self._logger.warning("%s: %s", self._without_it, str(error))
                failures = 0 if self.established else failures + 1
                self.established = False
                on_loss()
                self.closing.wait(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])

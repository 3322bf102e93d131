"""The options of a history, put together."""

from __future__ import annotations

from loopwarden.cli.cluster_options import connection
from loopwarden.cli.histories import History
from loopwarden.cli.log_parts import Asked
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.times import span


def history_of(
    runs: list[str] | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    file: str | None,
    resolved: list[str] | None,
    broker: str | None,
    prefix: str | None,
    properties: str | None,
) -> History:
    """Return the history that a command is asked about.

    Raises:
        Mistake: the options contradict one another, or a time is none.
        WrongSetting: the cluster's address is none.
    """
    if file is not None and (since is not None or until is not None):
        raise Mistake("--from-file: must not be given with --since or --until: a file is judged as a whole")
    asked = Asked(
        tuple(dict.fromkeys(runs or ())),
        *span(since, until),
        judged_only=False,
    )
    return History(
        connection(broker, prefix, properties) if file is None else None,
        file,
        asked,
        agent,
        frozenset(reason.strip().lower() for reason in resolved or ()),
    )

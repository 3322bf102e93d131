"""What `loopwarden policy status` does: what is in force in each partition, as a table or as JSON lines."""

from __future__ import annotations

import time
from typing import Any

import orjson

from loopwarden.cli.fitting import fitting_table
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import ArchivedPolicy, Connection, InForce, policies_in_force, read_archive
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument


def show_status(connection: Connection, as_json: bool) -> int:
    """Print the status; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
    """
    archive = read_archive(connection)
    with scanning_bar("Reading what was applied") as progress:
        states = policies_in_force(connection, archive, progress)
    policies = {policy.number: policy for policy in archive}
    newest = archive[-1] if archive else None
    for state in states if as_json else ():
        print(orjson.dumps(_as_json(state, policies)).decode())
    if not as_json:
        _table(states)
    everywhere = newest is None or all(state.number == newest.number for state in states)
    if as_json:
        return 0 if everywhere else 1
    print(in_words(states, policies))
    if newest is not None and not everywhere:
        missing = [state.partition for state in states if state.number != newest.number]
        say(
            f"policy {newest.number}, the newest of the archive, is not seen in {plural(len(missing), 'partition')}"
            f" ({', '.join(map(str, missing))}): apply it again to complete it. `loopwarden policy show"
            f" {newest.number}` prints it"
        )
    return 0 if everywhere else 1


def in_words(states: list[InForce], policies: dict[int, ArchivedPolicy]) -> str:
    """Return a sentence on what holds for runs that begin now."""
    numbers = {state.number for state in states}
    if len(numbers) > 1:
        return "in force: not the same policy in every partition"
    [number] = numbers
    if number is None:
        gone = any(not state.certain for state in states)
        told = "no policy is seen in the log (its oldest records are gone)" if gone else "no policy was ever applied"
        return f"in force: {told}; the defaults: {detectors_in_words(DEFAULT_DOCUMENT)}"
    policy = policies[number]
    whose = f"applied by {printable(policy.by)}: {printable(policy.why)}"
    return f"in force: policy {number}, {detectors_in_words(policy.document)}; {whose}"


def detectors_in_words(document: PolicyDocument) -> str:
    """Return what of a policy matters most, for agents without settings of their own."""
    policy = document.resolve(None)
    if policy.detectors_on:
        return f"detectors on (warn at {policy.warning_threshold}, block at {policy.critical_threshold})"
    return f"detectors off, {'only the post-compaction guard runs' if policy.guard_on else 'nothing is watched'}"


def _as_json(state: InForce, policies: dict[int, ArchivedPolicy]) -> dict[str, Any]:
    policy = None if state.number is None else policies[state.number]
    return {
        **state._asdict(),
        "digest": None if policy is None else policy.document.digest,
        "by": None if policy is None else policy.by,
        "why": None if policy is None else policy.why,
    }


def _table(states: list[InForce]) -> None:
    from rich.console import Console

    rows = []
    for state in states:
        if state.number is None or state.append_time is None:
            rows.append((str(state.partition), "none" if state.certain else "not in the log any more", "-", "-"))
            continue
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.append_time / 1000))
        number = str(state.number) if state.certain else f"{state.number}, or a newer one no longer in the log"
        rows.append((str(state.partition), number, str(state.offset), when))
    console = Console(highlight=False)
    console.print(fitting_table(("partition", "policy", "at offset", "applied"), rows, console.width))

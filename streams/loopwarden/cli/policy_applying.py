"""What `loopwarden policy apply` does, and `loopwarden up --first-policy`."""

from __future__ import annotations

import getpass
import time

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.policy_source import told_policy
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, say
from loopwarden.client import Applied, Connection, apply_policy
from loopwarden_schemas.policy import PolicyDocument


def apply_file(connection: Connection, file: str, by: str | None, why: str) -> int:
    """Apply the policy in a file, and tell what came of it; return the exit code.

    Raises:
        Mistake: the file is not there, or no reason is given.
        ClusterError: the broker is not there, or did not take the policy everywhere.
    """
    if not why.strip():
        raise Mistake("--why: must say a reason, got none")
    document = told_policy(file).document
    if document is None:
        say("the policy was refused: what is in force stays")
        return 1
    applied = apply_document(connection, document, by, why)
    print(applied_in_words(applied))
    if not applied.newly_archived and applied.policy.why != why:
        say(
            f"this reason was not recorded: policy {applied.policy.number} was archived by {applied.policy.by} with the"
            f" reason {applied.policy.why!r}, and only completed now. Apply it once more to record this one, too"
        )
    if not document.resolve(None).detectors_on:
        say("this policy leaves the detectors off, since it does not say `enabled: true` for the fleet")
    return 0


def apply_document(
    connection: Connection, document: PolicyDocument, by: str | None, why: str, confirm: bool = True
) -> Applied:
    """Apply a policy with the name and the time of whoever asks. For `confirm` see `apply_policy`.

    Raises:
        ClusterError: as `apply_policy`.
    """
    with scanning_bar("Looking for what is in force") as progress:
        return apply_policy(
            connection,
            document,
            by=by or _user(),
            why=why,
            ts=time.time_ns() // 1_000_000,
            confirm=confirm,
            progress=progress,
        )


def applied_in_words(applied: Applied) -> str:
    """Return a sentence that says what applying came to."""
    partitions = plural(len(applied.written), "partition")
    if applied.confirms is not None:
        return (
            f"policy {applied.policy.number} is in force in all {partitions}: the same as policy {applied.confirms},"
            " archived again for who applied it now and why"
        )
    if applied.newly_archived:
        return f"policy {applied.policy.number} is in force in all {partitions}, for the runs that begin from now on"
    if applied.written:
        which = ", ".join(map(str, applied.written))
        return (
            f"policy {applied.policy.number} was archived already; completed in {partitions} where it was missing:"
            f" {which}"
        )
    return f"policy {applied.policy.number} is in force in all {plural(len(applied.already), 'partition')} already"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return "unknown"

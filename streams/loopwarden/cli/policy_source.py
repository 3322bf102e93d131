"""The policy that a command is told to use."""

from __future__ import annotations

from loopwarden.cli.terminal import say
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.policy_file import read_policy_file


def fleet_policy(file: str | None) -> PolicyDocument:
    """Return the policy in a file, its warnings told; without one the defaults.

    Raises:
        PolicyError: the file is not there, or has mistakes.
    """
    if file is None:
        return DEFAULT_DOCUMENT
    reading = read_policy_file(file)
    document = reading.accepted()
    for warning in reading.warnings:
        say(f"warning: {warning}")
    return document

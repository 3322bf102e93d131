"""The policy that a command is told to use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.terminal import say
from loopwarden.importers import STDIN
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.policy_file import PolicyFileReading, read_policy_file

_STANDARD_INPUT: Final = "standard input"

RECOMMENDED: Final = "recommended"
"""What stands for the recommended policy where a file's name may."""

_RECOMMENDED: Final = PolicyDocument.from_value({"tools": {"loopDetection": {"enabled": True}}})
"""What infra/policies/recommended.json5 comes to: its other values are the defaults."""


def fleet_policy(file: str | None) -> PolicyDocument:
    """Return the policy in a file, its warnings told, or the recommended one; without any the defaults.

    Raises:
        PolicyError: the file is not there, or has mistakes.
    """
    if file is None:
        return DEFAULT_DOCUMENT
    if file == RECOMMENDED and not Path(file).exists():
        return _RECOMMENDED
    reading = read_policy_file(file)
    document = reading.accepted()
    for warning in reading.warnings:
        say(f"warning: {warning}")
    return document


def told_policy(file: str) -> PolicyFileReading:
    """Read a policy from a file, or `-`, and tell its mistakes and warnings.

    Raises:
        Mistake: there is no such file, or standard input is no text.
    """
    if file == STDIN:
        reading = read_policy_file(_STANDARD_INPUT, text=_standard_input())
    elif not Path(file).exists():
        raise Mistake(f"{file}: there is no such file")
    else:
        reading = read_policy_file(file)
    for told in (*reading.errors, *(f"warning: {warning}" for warning in reading.warnings)):
        say(str(told))
    return reading


def _standard_input() -> str:
    if sys.stdin is None:
        raise Mistake(f"{_STANDARD_INPUT}: is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise Mistake(f"{_STANDARD_INPUT}: must be UTF-8 text, got byte 0x{byte:02x}") from None

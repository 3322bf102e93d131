"""What `loopwarden policy check` does: mistakes with their lines, or the effective policy with every value's origin."""

from __future__ import annotations

import sys

from loopwarden.cli.fitting import fitting_table
from loopwarden.cli.policy_source import told_policy
from loopwarden.cli.terminal import plural, printable, say
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_effect import EffectiveSetting, effective
from loopwarden_schemas.policy_own_part import own_part


def check_policy(file: str, agent: str | None) -> int:
    """Print what a policy file comes to; return the exit code.

    Raises:
        Mistake: there is no such file, or standard input is no text.
    """
    reading = told_policy(file)
    if reading.document is None:
        say(f"{reading.file}: {plural(len(reading.errors), 'mistake')}")
        return 1
    _show(reading.file, reading.document, agent)
    return 0


def _show(file: str, document: PolicyDocument, agent: str | None) -> None:
    from rich.console import Console

    policy = document.resolve(agent)
    whose = "agents without settings of their own" if agent is None else f"agent {printable(agent)}"
    print(f"{printable(file)}: the policy for {whose}")
    rows = [(setting.path, _value(setting.value), _origin(setting)) for setting in effective(document, agent)]
    console = Console(file=sys.stdout, highlight=False)
    console.print(fitting_table(("setting", "value", "origin"), rows, console.width))
    digest = own_part(document).digest
    print(f"document digest  {digest}   (of the file's policy, as it is archived: policy.applied carries it)")
    print(f"policy digest    {policy.digest}   (of the values above: verdicts carry it)")
    if agent is not None and agent not in document.overlays:
        say(f"agent {agent!r} has no settings of its own in this file: the fleet's hold")
    if agent is None and document.overlays:
        say(f"with settings of their own (--agent ID): {', '.join(document.overlays)}")
    if not policy.detectors_on:
        watched = "only the post-compaction guard runs" if policy.guard_on else "nothing is watched"
        say(f"the detectors are off: {watched}. To turn them on: enabled: true in tools.loopDetection")


def _value(value: bool | int | None) -> str:
    return "unset" if value is None else str(value).lower()


def _origin(setting: EffectiveSetting) -> str:
    if setting.origin != "clamped":
        return setting.origin
    return (
        f"clamped ({_value(setting.given)} {'by' if setting.given_by == 'default' else 'given by'} {setting.given_by})"
    )

"""The policy in force, and how it came to be what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loopwarden.client import ArchivedPolicy
from loopwarden.report.html_tables import moment
from loopwarden.report.markup import Child, Markup, tag
from loopwarden.report.settings import flat, setting_in_words
from loopwarden.report.words import plural
from loopwarden.web.layout import document
from loopwarden.web.parts import cell, header, section, table
from loopwarden.web.policies import Policies
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument


def policy_page(policies: Policies) -> str:
    """Return the page."""
    by_number = {policy.number: policy for policy in policies.archive}
    in_force = None if policies.number is None else by_number.get(policies.number)
    document_in_force = DEFAULT_DOCUMENT if in_force is None else in_force.document
    numbers = {state.number for state in policies.in_force}
    same = len(numbers) <= 1
    return document(
        "Policy",
        "policy",
        header("Policy", _lead(in_force, numbers)),
        tag(
            "main",
            section(
                "In force" if same else "The defaults, in force where no policy was applied",
                _settings(document_in_force),
                *_agents(document_in_force),
            ),
            section("History", _history(policies)),
            section("By partition", _partitions(policies)),
        ),
    )


def _lead(in_force: ArchivedPolicy | None, numbers: set[int | None]) -> Child:
    if len(numbers) > 1:
        return "Not the same policy is in force in every partition: apply the newest one again to complete it."
    if in_force is None:
        return "No policy is seen in the log: runs that begin now are judged by the defaults."
    return f"Runs that begin now are judged by policy {in_force.number}, applied by {in_force.by}: {in_force.why}"


def _settings(found: PolicyDocument) -> Markup:
    policy = found.resolve(None)
    told = [
        tag(
            "span",
            f"detectors {'on' if policy.detectors_on else 'off'}",
            class_=f"pill {'quiet' if policy.detectors_on else 'warn'}",
        ),
        tag(
            "span",
            f"post-compaction guard {'on' if policy.guard_on else 'off'}",
            class_=f"pill {'quiet' if policy.guard_on else 'warn'}",
        ),
    ]
    rows = [
        tag("tr", tag("th", name, scope="row"), cell("Value", setting_in_words(value)))
        for name, value in flat(policy.to_table())
    ]
    return Markup(tag("p", *told, class_="pills") + table("Every setting", ("Setting", "Value"), rows, "narrow"))


def _agents(found: PolicyDocument) -> Iterator[Markup]:
    fleet = dict(flat(found.resolve(None).to_table()))
    for agent in sorted(found.overlays):
        told = _differences(fleet, dict(flat(found.resolve(agent).to_table())))
        yield tag("p", tag("strong", f"Agent {agent}: "), told or "as the fleet")


def _history(policies: Policies) -> Markup:
    if not policies.archive:
        return tag(
            "p", "No policy was ever applied. ", tag("code", "loopwarden policy apply FILE --why TEXT"), " does."
        )
    before = dict(flat(DEFAULT_DOCUMENT.resolve(None).to_table()))
    rows = []
    for policy in policies.archive:
        now = dict(flat(policy.document.resolve(None).to_table()))
        rows.append(_row(policy, _differences(before, now), policies.number))
        before = now
    heads = ("Policy", "Applied (UTC)", "By", "Why", "What it changed", "Document")
    return table("Policies, the newest first", heads, rows[::-1])


def _row(policy: ArchivedPolicy, changed: str, in_force: int | None) -> Markup:
    text = json.dumps(policy.document.value, indent=2, ensure_ascii=False)
    badge = tag("span", "in force", class_="badge clear") if policy.number == in_force else None
    return tag(
        "tr",
        tag("th", f"{policy.number} ", badge, scope="row"),
        cell("Applied", moment(policy.ts)),
        cell("By", policy.by or "—"),
        cell("Why", policy.why or "—"),
        cell("What it changed", changed or "nothing for the fleet"),
        cell(
            "Document",
            tag("details", tag("summary", "show"), tag("pre", text, tabindex="0")),
            tag("small", f"digest {policy.document.digest[:12]}…", class_="under"),
        ),
        id=f"policy-{policy.number}",
    )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return ", ".join(
        f"{name} {setting_in_words(before.get(name))} → {setting_in_words(now.get(name))}" for name in names
    )


def _partitions(policies: Policies) -> Markup:
    rows = []
    for state in policies.in_force:
        number = "none" if state.number is None else str(state.number)
        gone = "" if state.certain else ", or a newer one no longer in the log"
        when = "—" if state.append_time is None else moment(state.append_time)
        offset = "—" if state.offset is None else f"{state.offset:,}"
        rows.append(
            tag(
                "tr",
                tag("th", state.partition, scope="row"),
                cell("Policy", number + gone),
                cell("At offset", offset),
                cell("Since", when),
            )
        )
    told = tag("summary", plural(len(rows), "partition"))
    return tag(
        "details",
        told,
        table("What is in force in each partition", ("Partition", "Policy", "At offset", "Since (UTC)"), rows),
    )

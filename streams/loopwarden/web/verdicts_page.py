"""The verdicts as they are published, the newest first."""

from __future__ import annotations

from loopwarden.report.html_tables import moment
from loopwarden.report.markup import Child, Markup, tag
from loopwarden.report.words import plural
from loopwarden.web.asking import VerdictsAsked
from loopwarden.web.fleet import Published
from loopwarden.web.fleet_page import Source
from loopwarden.web.layout import document
from loopwarden.web.parts import cell, choice, form, header, run_link, table, text, under
from loopwarden_schemas.structs import Verdict

_ACTIONS = {"": "any", "warn": "warnings", "block": "blocks", "abort": "aborts", "clear": "blocks lifted"}
_ORDERS = {"": "orders and attempts", "true": "orders only"}
_REASONS = (
    "unknown_tool_repeat",
    "global_circuit_breaker",
    "known_poll_no_progress",
    "ping_pong",
    "generic_repeat",
    "compaction_loop_persisted",
    "block_ignored",
    "pattern_ended",
)


def verdicts_page(asked: VerdictsAsked, found: list[Published], source: Source) -> str:
    """Return the page."""
    reasons = {"": "any", **{each: each for each in _REASONS}, asked.reason: asked.reason or "any"}
    heads = ("When (UTC)", "Verdict", "Run", "Why", "About", "Message to the model")
    told = f"the newest {len(found):,} verdicts" if len(found) == asked.limit else plural(len(found), "verdict")
    return document(
        "Verdicts",
        "verdicts",
        header("Verdicts", None, source.notes()),
        tag(
            "main",
            tag(
                "section",
                form(
                    "/verdicts",
                    text("text", "Run, agent or tool", asked.text),
                    choice("action", "Action", _ACTIONS, asked.action),
                    choice("reason", "Why", reasons, asked.reason),
                    choice("orders", "Phase", _ORDERS, "true" if asked.orders else ""),
                ),
                tag("p", tag("small", f"{told}, {source.look_back}")),
                table("Verdicts, the newest first", heads, [_row(each) for each in found])
                if found
                else tag("p", "No such verdict."),
            ),
        ),
    )


def _row(published: Published) -> Markup:
    at, verdict = published
    counted = None if verdict.count is None else tag("small", f" {verdict.count:,} of {verdict.threshold:,}")
    return tag(
        "tr",
        cell("When", moment(at)),
        cell("Verdict", tag("span", _in_words(verdict), class_=f"badge {verdict.action}")),
        cell("Run", run_link(verdict.run_id), under(verdict.agent_id)),
        cell("Why", verdict.reason, counted),
        cell("About", _about(verdict)),
        cell("Message", verdict.message),
        id=f"v-{verdict.verdict_id}",
    )


def _in_words(verdict: Verdict) -> str:
    return "blocked attempt" if (verdict.action, verdict.phase) == ("block", "attempt") else verdict.action


def _about(verdict: Verdict) -> Child:
    if verdict.scope == "run":
        return "the run"
    return f"{verdict.tool or 'a call'}{' (every call)' if verdict.scope == 'tool' else ''}"

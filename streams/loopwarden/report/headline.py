"""A run in a sentence or two: what looped, when it was noticed, and who obeyed."""

from __future__ import annotations

from typing import Final

from loopwarden.report.model import IssuedVerdict, Timeline
from loopwarden.report.words import plural

_DETECTED: Final = {
    "unknown_tool_repeat": "kept asking for {tool}, a tool that does not exist",
    "global_circuit_breaker": "called {tool} over and over with the same arguments and the same result",
    "known_poll_no_progress": "kept polling {tool} and got the same answer each time",
    "ping_pong": "went back and forth between two calls, {tool} among them",
    "generic_repeat": "called {tool} over and over with the same arguments",
    "compaction_loop_persisted": "went on with the same call of {tool} after its context was compacted",
    "block_ignored": "kept trying blocked calls, lastly of {tool}",
}

_GRAVITY: Final = ("abort", "block", "warn")


def headline(run: Timeline) -> str:
    """Return the sentences. Arguments are never in them."""
    if not run.cells:
        return "No calls."
    gravest = _gravest(run)
    if gravest is None:
        return f"{plural(len(run.cells), 'call')}; {_nothing_found(run)}"
    return " ".join(filter(None, (_found(run, gravest), _when(run), _obeyed(run), _after_abort(run), _repeated(run))))


def _gravest(run: Timeline) -> IssuedVerdict | None:
    for action in _GRAVITY:
        for verdict in run.verdicts:
            if verdict.action == action:
                return verdict
    return None


def _nothing_found(run: Timeline) -> str:
    if any(policy.detectors_on for policy in run.policies):
        return "no detector found anything."
    guard = any(policy.guard_on for policy in run.policies)
    return f"the detectors are off{', only the post-compaction guard runs' if guard else ''}."


def _found(run: Timeline, verdict: IssuedVerdict) -> str:
    if verdict.detector is None:
        return "An operator ended the run."
    letter = "" if verdict.signature is None else f" ({run.signatures[verdict.signature].letter})"
    tool = f"“{verdict.tool}”{letter}"
    return f"The run {_DETECTED.get(verdict.detector, verdict.detector).format(tool=tool)}."


def _when(run: Timeline) -> str:
    found = []
    for action, words in (("warn", "warned at"), ("block", "blocked from"), ("abort", "aborted at")):
        first = next((verdict for verdict in run.verdicts if verdict.action == action), None)
        if first is not None:
            # An order is about the calls to come; whoever reads looks for the first one that it stopped.
            call = first.before_call if first.phase == "order" else (first.call or first.before_call)
            found.append((call, f"{words} call {call:,}"))
    # As it happened; of the same call the lesser one first.
    text = ", ".join(told for _, told in sorted(found, key=lambda each: each[0]))
    return f"{text[:1].upper()}{text[1:]}."


def _obeyed(run: Timeline) -> str:
    refused, disobeyed = run.totals.refused, run.totals.disobeyed
    if not run.totals.blocks:
        return ""
    if not refused and not disobeyed:
        return "No blocked call was tried."
    made = f"{plural(disobeyed, 'blocked call')} made all the same"
    told = f"The runner refused {plural(refused, 'call')}" if refused else ""
    return f"{told}{', and ' if told and disobeyed else ''}{made if disobeyed else ''}.".replace("..", ".")


def _after_abort(run: Timeline) -> str:
    after = sum(verdict.disobeyed for verdict in run.verdicts if verdict.action == "abort")
    return f"{plural(after, 'call')} came after the abort." if after else ""


def _repeated(run: Timeline) -> str:
    executed = run.totals.calls - run.totals.refused
    if not run.totals.repeated:
        return "No call brought the same as the one before."
    return f"Of {plural(executed, 'executed call')}, {run.totals.repeated:,} brought nothing new."

"""What a policy document comes to: every setting with its origin, and what will not happen as it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from loopwarden_schemas.policy import ABORT_AFTER_BLOCKS, SETTINGS, Overlay, Policy, PolicyDocument, given, settle

Origin = Literal["default", "global", "agent"]
Place = tuple[str | int, ...]
"""Where something stands in a document: keys and indexes from its root."""

_DEFAULTS: Final = {setting.path: setting.default for setting in SETTINGS}
_DEFAULT: Final[Origin] = "default"
_GLOBAL: Final[Origin] = "global"
_AGENT: Final[Origin] = "agent"
_FLEET: Final[Place] = ("tools", "loopDetection")
_WARNING, _CRITICAL, _BREAKER = "warningThreshold", "criticalThreshold", "globalCircuitBreakerThreshold"
_REPEATS: Final = {
    "known_poll_no_progress": "detectors.knownPollNoProgress",
    "generic_repeat": "detectors.genericRepeat",
}
_BELOW: Final = {_CRITICAL: [_WARNING], _BREAKER: [_CRITICAL, _WARNING]}
_PING_PONG: Final = {"ping_pong": "detectors.pingPong"}


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it holds for an agent.

    Attributes:
        path: The setting inside its block, such as `detectors.pingPong`; one of ours with `loopwarden.` before it.
        value: What holds.
        origin: Who said so; `clamped` where the value was lowered to its maximum or raised to keep the order.
        given: What it was before it was clamped, else the value itself.
        given_by: Where `given` comes from.
    """

    path: str
    value: bool | int | None
    origin: Literal["default", "global", "agent", "clamped"]
    given: bool | int | None
    given_by: Origin


class Caution(NamedTuple):
    """Something in a valid document that will not happen as it was written, and the place where it arises."""

    place: Place
    message: str


class _Merged:
    """The valid values of the fleet's block and one agent's, merged, and which of the two gave each.

    Attributes:
        place: Where the uppermost block stands.
        block: The valid values that the uppermost block gives itself.
        uppermost: Whose block that is.
        values: The merged values, defaults and all, before clamping.
        origins: Who gave each of them.
        policy: What they resolve to.
    """

    def __init__(self, document: PolicyDocument, overlay: Overlay | None) -> None:
        self.place: Place = _FLEET
        self.block = given(document.fleet)
        self.uppermost: Origin = "global"
        self.values = {**_DEFAULTS, **self.block}
        self.origins: dict[str, Origin] = {**dict.fromkeys(_DEFAULTS, "default"), **dict.fromkeys(self.block, "global")}
        if overlay is not None:
            self.place = ("agents", "list", overlay.position, *_FLEET)
            self.block = given(overlay.block)
            self.uppermost = "agent"
            self.values.update(self.block)
            self.origins.update(dict.fromkeys(self.block, "agent"))
        self.policy: Policy = settle(self.values)

    def told(self, path: str) -> str:
        """A setting for people: `criticalThreshold 20 (default)`; without the origin where it is the block's own."""
        origin = self.origins[path]
        return f"{path} {self.values[path]}{'' if origin == self.uppermost else f' ({origin})'}"


def effective(document: PolicyDocument, agent_id: str | None) -> tuple[EffectiveSetting, ...]:
    """Return every setting as it holds for the runs of an agent (None: of agents without a block of their own)."""
    merged = _Merged(document, document.overlays.get(agent_id) if agent_id is not None else None)
    settings = []
    for setting in SETTINGS:
        before, value = merged.values[setting.path], getattr(merged.policy, setting.attribute)
        given_by = merged.origins[setting.path]
        origin = given_by if value == before else "clamped"
        settings.append(EffectiveSetting(setting.path, value, origin, before, given_by))
    return (*settings, _abort_after_blocks(document, agent_id))


def _abort_after_blocks(document: PolicyDocument, agent_id: str | None) -> EffectiveSetting:
    overlay = document.overlays.get(agent_id) if agent_id is not None else None
    value, origin = document.abort_after_blocks, _DEFAULT if document.abort_after_blocks is None else _GLOBAL
    if overlay is not None and overlay.abort_after_blocks is not None:
        value, origin = overlay.abort_after_blocks, _AGENT
    return EffectiveSetting(f"loopwarden.{ABORT_AFTER_BLOCKS}", value, origin, value, origin)


def cautions(document: PolicyDocument) -> tuple[Caution, ...]:
    """Return what of a document will not happen as written, for the fleet and for each agent.

    Judged are the merged values. What an agent merely inherits is told once, where the fleet's block says it.
    """
    found = []
    for overlay in (None, *document.overlays.values()):
        merged = _Merged(document, overlay)
        for finding in (*_above_maximum(merged), *_misordered(merged), *_unreachable(merged)):
            # It arises where the uppermost block gives one of its causes; if that gives none, it is inherited.
            cause = next((path for path in finding.causes if path in merged.block), None)
            if cause is not None:
                found.append(Caution((*merged.place, *cause.split(".")), finding.message))
        limit = document.abort_after_blocks if overlay is None else overlay.abort_after_blocks
        if limit is not None and not merged.policy.detectors_on:
            place = (*merged.place[:-1], "loopwarden", ABORT_AFTER_BLOCKS)
            found.append(Caution(place, "no run will be ended by it: without `enabled: true` no call is blocked"))
    return tuple(found)


class _Finding(NamedTuple):
    causes: Sequence[str]
    message: str


def _above_maximum(merged: _Merged) -> Iterator[_Finding]:
    for setting in SETTINGS:
        value = merged.block.get(setting.path, 0)
        if setting.maximum is not None and value > setting.maximum:
            yield _Finding([setting.path], f"{value} is above the maximum: {setting.maximum} is used")


def _misordered(merged: _Merged) -> Iterator[_Finding]:
    critical, breaker = merged.policy.critical_threshold, merged.policy.global_circuit_breaker_threshold
    raised = critical != merged.values[_CRITICAL]
    if raised:
        below = f"{merged.told(_CRITICAL)} is not above {merged.told(_WARNING)}"
        yield _Finding([_CRITICAL, _WARNING], f"{below}: {critical} is used for criticalThreshold")
    if breaker != merged.values[_BREAKER]:
        below = f"{merged.told(_BREAKER)} is not above "
        below += f"criticalThreshold {critical} (raised)" if raised else merged.told(_CRITICAL)
        causes = [_BREAKER, _CRITICAL, *([_WARNING] if raised else [])]
        yield _Finding(causes, f"{below}: {breaker} is used for globalCircuitBreakerThreshold")


def _unreachable(merged: _Merged) -> Iterator[_Finding]:
    """Tiers that the kept calls cannot reach: counts of one call are at most H, of an alternation at most H + 1.

    (Reference, section 9.)
    """
    policy, kept = merged.policy, merged.policy.history_size
    yield from _tier(merged, _WARNING, policy.warning_threshold, _silent(merged, policy.warning_threshold), "warn")
    yield from _tier(merged, _CRITICAL, policy.critical_threshold, _silent(merged, policy.critical_threshold), "block")
    for path, threshold, detector in (
        ("unknownToolThreshold", policy.unknown_tool_threshold, "unknown_tool_repeat"),
        (_BREAKER, policy.global_circuit_breaker_threshold, "global_circuit_breaker"),
    ):
        yield from _tier(merged, path, threshold, {detector: path} if threshold > kept else {}, "block")


def _silent(merged: _Merged, threshold: int) -> dict[str, str]:
    """The detectors that are switched on and cannot reach a threshold, with the paths of their switches."""
    kept = merged.policy.history_size
    beyond = {**(_REPEATS if threshold > kept else {}), **(_PING_PONG if threshold > kept + 1 else {})}
    return {detector: switch for detector, switch in beyond.items() if merged.values[switch]}


def _tier(merged: _Merged, path: str, threshold: int, silent: Mapping[str, str], what: str) -> Iterator[_Finding]:
    if silent:
        raised_by = [] if threshold == merged.values[path] else _BELOW[path]
        *most, last = silent
        names = f"{', '.join(most)} and {last}" if most else last
        out_of_reach = f"{path} {threshold} is out of reach with {merged.policy.history_size} calls kept (historySize)"
        causes = ["historySize", path, *raised_by, *silent.values()]
        yield _Finding(causes, f"{out_of_reach}: {names} will never {what}")

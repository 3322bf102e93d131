"""Policies: the fleet's document, the overlay of layers, clamping, and the resolved table that the judge reads.

Everything here is lenient: in a layer that comes merged or from afar a bad value counts as not given, so that the layer
beneath shows through. What a file may hold is stricter: see `policy_models` and `policy_file`. (design.md, Policy.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from loopwarden_schemas.digests import digest

MAX_WINDOW: Final = 256
"""Calls kept per run, and attempts a guard may watch, at most: what bounds a run's state. (design.md, Policy.)"""

MAX_THRESHOLD: Final = 2**53 - 1
"""The largest integer that every reader of JSON sees exactly; a number beyond it counts as a bad value."""


class Setting(NamedTuple):
    """One setting of the loopDetection block: where it stands, its default, and the maximum it is clamped to."""

    path: str
    attribute: str
    default: bool | int | None
    maximum: int | None = None

    def valid(self, value: object) -> bool | int | None:
        """Return the value as this setting takes it, or None where it counts as not given."""
        if self.default is None or isinstance(self.default, bool):
            return value if isinstance(value, bool) else None
        return positive_integer(value)


SETTINGS: Final = (
    Setting("enabled", "enabled", None),
    Setting("historySize", "history_size", 30, MAX_WINDOW),
    Setting("warningThreshold", "warning_threshold", 10),
    Setting("criticalThreshold", "critical_threshold", 20),
    Setting("unknownToolThreshold", "unknown_tool_threshold", 10),
    Setting("globalCircuitBreakerThreshold", "global_circuit_breaker_threshold", 30),
    Setting("detectors.genericRepeat", "generic_repeat", True),
    Setting("detectors.knownPollNoProgress", "known_poll_no_progress", True),
    Setting("detectors.pingPong", "ping_pong", True),
    Setting("postCompactionGuard.windowSize", "guard_window", 3, MAX_WINDOW),
)
"""Every setting, in the order of the table in design.md, Policy."""


ABORT_AFTER_BLOCKS: Final = "abortAfterBlocks"
"""Our own setting, in `tools.loopwarden`: so many attempts of blocked calls end the run. Unset by default."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The effective policy of one run. Build it with `resolve`, which keeps the thresholds in order.

    Attributes:
        enabled: True, False or None where nobody said; see `detectors_on` and `guard_on`.
        history_size: Calls kept per run.
        abort_after_blocks: Attempts of blocked calls, since the last allowed one, that end the run; None: none do.
        guard_window: Attempts that the post-compaction guard watches, and equal ones it takes to abort.
        detectors_on: The rolling-history detectors run only when `enabled` is true.
        guard_on: The post-compaction guard runs unless `enabled` is exactly false.
        digest: The `policy_digest` of verdicts, over `to_table()`. (reference/hashing.md.)
    """

    enabled: bool | None
    history_size: int
    warning_threshold: int
    critical_threshold: int
    unknown_tool_threshold: int
    global_circuit_breaker_threshold: int
    generic_repeat: bool
    known_poll_no_progress: bool
    ping_pong: bool
    guard_window: int
    abort_after_blocks: int | None = None
    # Stored, not computed on access: the judge reads them for every event.
    detectors_on: bool = field(init=False, repr=False, compare=False)
    guard_on: bool = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "detectors_on", self.enabled is True)
        object.__setattr__(self, "guard_on", self.enabled is not False)
        object.__setattr__(self, "digest", digest(self.to_table()))

    def to_table(self) -> dict[str, Any]:
        """Return the resolved table, every field present, in OpenClaw's names."""
        table: dict[str, Any] = {}
        for setting in SETTINGS:
            *outer, name = setting.path.split(".")
            block = table.setdefault(outer[0], {}) if outer else table
            block[name] = getattr(self, setting.attribute)
        if self.abort_after_blocks is not None:
            # Only where it is set, so that policies without it keep the digest they always had.
            table[ABORT_AFTER_BLOCKS] = self.abort_after_blocks
        return table


def resolve(*layers: object) -> Policy:
    """Return the policy of `loopDetection` blocks laid over one another, later ones over earlier ones.

    Bad values, and layers that are no mappings (None among them), count as not given. Then come defaults, maxima, and
    the order of the thresholds: critical at least warning + 1, breaker at least critical + 1.
    """
    values = {setting.path: setting.default for setting in SETTINGS}
    for layer in layers:
        values.update(given(layer))
    return settle(values)


def given(layer: object) -> dict[str, bool | int]:
    """Return what a `loopDetection` block really gives: its valid values by the path of their setting, not clamped."""
    found = {}
    for setting in SETTINGS:
        value = setting.valid(value_at(layer, *setting.path.split(".")))
        if value is not None:
            found[setting.path] = value
    return found


def settle(values: Mapping[str, bool | int | None]) -> Policy:
    """Return the policy of one valid value for every setting's path: clamped, and its thresholds put in order."""
    fields: dict[str, Any] = {}
    for setting in SETTINGS:
        value = values[setting.path]
        if setting.maximum is not None and value is not None:
            value = min(value, setting.maximum)
        fields[setting.attribute] = value
    critical = max(fields["critical_threshold"], fields["warning_threshold"] + 1)
    fields["critical_threshold"] = critical
    fields["global_circuit_breaker_threshold"] = max(fields["global_circuit_breaker_threshold"], critical + 1)
    return Policy(**fields)


def positive_integer(value: object) -> int | None:
    """Return a positive integer as an int, 5.0 as 5, and None for anything else (booleans, text, what is too large)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_THRESHOLD:
        return value
    return None


def value_at(value: object, *keys: str) -> object:
    """Return what stands under these keys, one inside the other, or None where there is no such place."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


class Overlay(NamedTuple):
    """What one agent has of its own, and the agent's position in `agents.list`."""

    position: int
    block: Mapping[str, Any]
    """Its `loopDetection` block."""
    abort_after_blocks: int | None = None


class PolicyDocument:
    """A fleet's policy document: an OpenClaw configuration, or only its `loopDetection` blocks.

    Attributes:
        value: The document as JSON; not to be changed.
        fleet: The block at `tools.loopDetection`, where there is one.
        overlays: The blocks of agents by agent id; of agents listed twice the first counts.
    """

    __slots__ = ("_digest", "_resolved", "abort_after_blocks", "fleet", "overlays", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        block = value_at(value, "tools", "loopDetection")
        self.fleet = block if isinstance(block, Mapping) else None
        self.overlays = dict(_overlays(value))
        self.abort_after_blocks = _abort_after_blocks(value)
        self._digest: str | None = None
        # Only agents with an overlay have an entry, the rest share that of None: the document bounds the memory.
        self._resolved: dict[str | None, Policy] = {}

    @classmethod
    def from_value(cls, value: object) -> PolicyDocument:
        """Build the document of any JSON value, leniently: what is not a policy in it counts as not given."""
        return cls(value)

    @property
    def digest(self) -> str:
        """The digest of the document. (reference/hashing.md.)

        Raises:
            NotCanonical: the document holds something that JSON does not have.
        """
        if self._digest is None:
            self._digest = digest(self.value)
        return self._digest

    def resolve(self, agent_id: str | None, override: object = None) -> Policy:
        """Return the policy of a run: the fleet's block, the agent's over it, the run's own `override` over both."""
        overlay = self.overlays.get(agent_id) if agent_id is not None else None
        if override is not None:
            return self._resolve(overlay, override)
        key = agent_id if overlay else None
        policy = self._resolved.get(key)
        if policy is None:
            policy = self._resolved[key] = self._resolve(overlay, None)
        return policy

    def _resolve(self, overlay: Overlay | None, override: object) -> Policy:
        policy = resolve(self.fleet, overlay.block if overlay else None, override)
        limit = (overlay.abort_after_blocks if overlay else None) or self.abort_after_blocks
        return policy if limit is None else replace(policy, abort_after_blocks=limit)


def _overlays(value: object) -> Iterator[tuple[str, Overlay]]:
    agents = value_at(value, "agents", "list")
    seen = set()
    for position, agent in enumerate(agents if isinstance(agents, list) else ()):
        agent_id = value_at(agent, "id")
        if not isinstance(agent_id, str) or agent_id in seen:
            continue
        seen.add(agent_id)
        block, limit = value_at(agent, "tools", "loopDetection"), _abort_after_blocks(agent)
        if isinstance(block, Mapping) or limit is not None:
            yield agent_id, Overlay(position, block if isinstance(block, Mapping) else {}, limit)


def _abort_after_blocks(value: object) -> int | None:
    return positive_integer(value_at(value, "tools", "loopwarden", ABORT_AFTER_BLOCKS))


DEFAULT_DOCUMENT: Final = PolicyDocument({})
"""What is in force where no policy was applied: the defaults."""

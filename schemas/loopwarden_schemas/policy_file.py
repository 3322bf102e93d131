"""A policy file, read with the file, line and path of every mistake. (design.md, Policy.)

Exceptions:

    PolicyError              a policy is refused: path, rule, found, file, line
    └── PolicyFileError      a file is refused for several mistakes at once: `errors`

Mistakes are collected, not raised one at a time: see `read_policy_file`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loopwarden_schemas.json5_text import Json5Error, Json5Text, Place, read_json5
from loopwarden_schemas.policy import MAX_THRESHOLD, PolicyDocument, value_at
from loopwarden_schemas.policy_effect import cautions
from loopwarden_schemas.policy_models import Detectors, LoopDetection, Loopwarden, PolicyFile, PostCompactionGuard

MAX_FILE_BYTES: Final = 1024 * 1024
"""A document must fit into a record of `loop-policies`, and a record is at most 1 MiB. (design.md, limits.)"""

HOW_TO_WRAP: Final = "{ tools: { loopDetection: { enabled: true } } }"
"""The smallest policy file, shown to whoever wrote a block without its wrapping."""

_BLOCKS: Final = ("loopDetection", "loopwarden")

_MODELS: Final[dict[str, type[BaseModel]]] = {
    "loopDetection": LoopDetection,
    "loopwarden": Loopwarden,
    "detectors": Detectors,
    "postCompactionGuard": PostCompactionGuard,
}

_OWN_SETTINGS: Final = {field.alias for field in Loopwarden.model_fields.values()}


class PolicyError(ValueError):
    """A policy is refused.

    Attributes:
        path: Where in the document, such as `agents.list[0].tools.loopDetection.warningThreshold`; "" for all of it.
        rule: What must hold there.
        found: What was found, as JSON; None where there is nothing to show.
        file: The file as it was named, or None where the policy came from elsewhere.
        line: The line in the file, from 1, or None.
    """

    def __init__(
        self, path: str, rule: str, found: str | None = None, file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(_sentence(path, rule if found is None else f"{rule}, got {found}", file, line))
        self.path = path
        self.rule = rule
        self.found = found
        self.file = file
        self.line = line


class PolicyFileError(PolicyError):
    """A policy file is refused for more than one mistake; the text has a line for each.

    Attributes:
        errors: Every mistake, in the order of the file. The other attributes are those of the first.
    """

    def __init__(self, errors: tuple[PolicyError, ...]) -> None:
        first = errors[0]
        super().__init__(first.path, first.rule, first.found, first.file, first.line)
        self.args = ("\n".join(map(str, errors)),)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """Something in a valid policy that will not happen as it was written. Its text says where, and what will happen."""

    path: str
    message: str
    file: str
    line: int

    def __str__(self) -> str:
        return _sentence(self.path, self.message, self.file, self.line)


@dataclass(frozen=True, slots=True)
class PolicyFileReading:
    """What reading a policy file gave.

    Attributes:
        file: The file as it was named.
        document: The document, or None where there are errors.
        errors: Every mistake in it, in the order of the file.
        warnings: What will not happen as written; only looked for where there are no errors.
    """

    file: str
    document: PolicyDocument | None
    errors: tuple[PolicyError, ...] = ()
    warnings: tuple[PolicyWarning, ...] = ()

    def accepted(self) -> PolicyDocument:
        """Return the document.

        Raises:
            PolicyError: the file has a mistake; `PolicyFileError` where it has several.
        """
        if self.document is not None:
            return self.document
        raise self.errors[0] if len(self.errors) == 1 else PolicyFileError(self.errors)


def read_policy_file(path: Path | str, *, text: str | None = None) -> PolicyFileReading:
    """Read a policy file, JSON5, and collect everything that is wrong with it. Raises nothing for a user's mistake.

    Args:
        path: The file, named in every message as it is given here.
        text: What it holds, where that is known already (standard input); the file is then not opened.
    """
    file = str(path)
    try:
        read = read_json5(_text_of(Path(path)) if text is None else text.removeprefix("\ufeff"))
    except PolicyError as error:
        return PolicyFileReading(file, None, (error,))
    except Json5Error as error:
        return PolicyFileReading(file, None, (PolicyError("", error.rule, error.found, file, error.line),))
    errors = sorted(_mistakes(read, file), key=lambda error: error.line or 0)
    if errors:
        return PolicyFileReading(file, None, tuple(errors))
    document = PolicyDocument.from_value(read.value)
    warnings = [
        PolicyWarning(_dotted(place), message, file, _line(read, place))
        for place, message in (*cautions(document), *_shadowed_blocks(read))
    ]
    return PolicyFileReading(file, document, (), tuple(sorted(warnings, key=lambda warning: warning.line)))


def _text_of(path: Path) -> str:
    file = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = {FileNotFoundError: "there is no such file", IsADirectoryError: "must be a file, not a directory"}
        raise PolicyError("", reason.get(type(error), f"cannot be read: {error.strerror}"), None, file) from None
    if len(content) > MAX_FILE_BYTES:
        raise PolicyError("", "must be at most 1 MiB, the size of a record", "more", file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError("", "must be UTF-8 text", f"byte 0x{content[error.start]:02x}", file, line) from None


def _mistakes(read: Json5Text, file: str) -> Iterator[PolicyError]:
    def mistake(place: Place, rule: str, found: str | None = None, line: int | None = None) -> PolicyError:
        return PolicyError(_dotted(place), rule, found, file, line or _line(read, place))

    told = set()
    for place, rule, found in read.impossible:
        told.add(place)
        yield mistake(place, rule, found)
    for place, first, second in read.repeated:
        if _is_ours(place):
            yield mistake(place, f"must be given once, but line {first} gives it too", None, second)
    try:
        PolicyFile.model_validate(read.value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        refused = {detail["loc"] for detail in details}
        for detail in (detail for detail in details if detail["loc"] not in told):
            yield mistake(detail["loc"], _rule(detail), _shown(detail))
    else:
        refused = set()
    for place in dict.fromkeys(_blocks_without_agent(read, refused)):
        yield mistake((*place, "id"), "must name the agent that the block is for")
    on_the_way = {(), ("tools",), ("agents",), ("agents", "list")}
    if not any(block[-1] == "loopDetection" for block in _blocks(read.value)) and not refused & on_the_way:
        yield mistake((), _no_block(read.value))


def _rule(detail: ErrorDetails) -> str:
    kind, place = detail["type"], detail["loc"]
    if kind == "extra_forbidden":
        block = str(place[-2])
        known = [field.alias or name for name, field in _MODELS[block].model_fields.items()]
        if place[-1] in _OWN_SETTINGS:
            return "unknown key, it is a setting of ours: move it to loopwarden, beside loopDetection"
        close = difflib.get_close_matches(str(place[-1]), known, 1)
        return f"unknown key, did you mean {close[0]}?" if close else f"unknown key, {block} has {', '.join(known)}"
    if kind == "less_than_equal":
        return f"must be at most {MAX_THRESHOLD}"
    if kind.startswith(("int_", "greater_than")):
        return "must be a positive integer"
    return {
        "bool_type": "must be true or false",
        "string_type": "must be text",
        "list_type": "must be a list",
        "model_type": "must be an object",
    }.get(kind, detail["msg"])


def _shown(detail: ErrorDetails) -> str | None:
    if detail["type"] == "extra_forbidden":
        return None
    return _as_json(detail["input"])


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _blocks(value: object) -> Iterator[Place]:
    """The places of all blocks of ours, whatever they hold."""
    agents = value_at(value, "agents", "list")
    owners: list[tuple[Place, object]] = [((), value)]
    if isinstance(agents, list):
        owners += [(("agents", "list", index), agent) for index, agent in enumerate(agents)]
    for place, owner in owners:
        tools = value_at(owner, "tools")
        yield from ((*place, "tools", name) for name in _BLOCKS if isinstance(tools, Mapping) and name in tools)


def _blocks_of_agents(read: Json5Text) -> Iterator[tuple[Place, Any]]:
    agents: Any = value_at(read.value, "agents", "list")
    for place in _blocks(read.value):
        if len(place) > 2:
            yield place, agents[place[2]].get("id")


def _blocks_without_agent(read: Json5Text, refused: set[Place]) -> Iterator[Place]:
    for block, agent_id in _blocks_of_agents(read):
        if agent_id in (None, "") and (*block[:3], "id") not in refused:
            yield block[:3]


def _shadowed_blocks(read: Json5Text) -> Iterator[tuple[Place, str]]:
    agents: Any = value_at(read.value, "agents", "list")
    for block, agent_id in _blocks_of_agents(read):
        index = int(block[2])
        first = next(i for i, agent in enumerate(agents) if value_at(agent, "id") == agent_id)
        if first < index:
            line = _line(read, ("agents", "list", first, "id"))
            message = f'agent "{agent_id}" is listed in line {line} already: this block is never used'
            yield block, message


def _no_block(value: object) -> str:
    keys = set(value) if isinstance(value, Mapping) else set()
    if "loopDetection" in keys:
        return f"loopDetection must stand inside tools: {HOW_TO_WRAP}"
    bare = [field.alias for field in LoopDetection.model_fields.values() if field.alias in keys]
    if bare:
        return f"{bare[0]} must not stand alone: this is the block itself, wrap it as {HOW_TO_WRAP}"
    return f"has no loopDetection block: write {HOW_TO_WRAP}, or the same tools under an agent's id in agents.list"


def _is_ours(place: Place) -> bool:
    """Whether a place is inside one of our blocks, or on the way to one."""
    if place[:2] == ("agents", "list") and len(place) > 3:
        place = place[3:]
        if place == ("id",):
            return True
    if place in {("agents",), ("agents", "list"), ("tools",)}:
        return True
    return place[:2] in {("tools", block) for block in _BLOCKS}


def _line(read: Json5Text, place: Place) -> int:
    while place not in read.lines:
        place = place[:-1]
    return read.lines[place]


def _dotted(place: Place) -> str:
    dotted = ""
    for key in place:
        if isinstance(key, int):
            dotted += f"[{key}]"
        elif key.isidentifier():
            dotted += f".{key}" if dotted else key
        else:
            dotted += f"[{json.dumps(key)}]"
    return dotted


def _sentence(path: str, text: str, file: str | None, line: int | None) -> str:
    where = ", ".join(filter(None, [file, f"line {line}" if line is not None else ""]))
    return f"{f'{path}: ' if path else ''}{text}{f' ({where})' if where else ''}"

"""What an agent hands over, made into values that every reader of the log reads alike.

An agent's arguments and results may hold anything: tuples, NaN, objects, keys that are numbers, half a surrogate pair.
What the judge cannot read would be a dead letter, so such parts are replaced by something near, the same for equal
values; it is then hashed as the judge will hash it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from loopwarden_schemas.canonical import MAX_NESTING
from loopwarden_schemas.digests import digest, short_id
from loopwarden_schemas.events import CONTROL_CHARACTER, MAX_NAME_BYTES

_SAFE_NESTING: Final = MAX_NESTING - 2
"""An outcome is hashed inside an array of its own, and its parts inside that."""

_MOST_PARTS: Final = 100_000
"""So many parts of an odd payload are looked at: objects that lead to one another have endlessly many."""

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where an object lies in memory differs between two that are otherwise the same."""

# Sets in a fixed order: two equal ones must have one hash, whatever the process.
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder()


class Payload(NamedTuple):
    """A payload as its readers will read it.

    Attributes:
        value: Plain values, a copy: what the agent changes later is not seen here.
        size: In bytes, as MessagePack.
        digest: XXH3-128 of its canonical JSON, inside as many arrays as was asked for.
        changed: Whether parts had to be replaced.
    """

    value: Any
    size: int
    digest: str
    changed: bool = False


def as_read(value: Any, deeper: int = 0) -> Payload:
    """Return a payload as its readers will read it; what they could not read in it is replaced.

    Args:
        value: Anything.
        deeper: By so much it must be less deep than the contract allows, since it is hashed inside of something.
    """
    try:
        wire = _encoder.encode(value)
        plain = _decoder.decode(wire)
        return Payload(plain, len(wire), _digest(plain, deeper))
    except Exception:  # whatever an agent's objects do
        wire = _encoder.encode(_Replacing().safe(value, _SAFE_NESTING))
        plain = _decoder.decode(wire)
        return Payload(plain, len(wire), _digest(plain, deeper), changed=True)


def safe_text(value: Any) -> str:
    """Return text that UTF-8 can hold."""
    text = value if type(value) is str else _text(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def safe_name(value: Any) -> str | None:
    """Return an id that the contract allows.

    Control characters are spelled out, a longer one becomes its hash, an empty one counts as none.
    """
    if value is None:
        return None
    text = safe_text(value)
    if not text.isprintable():
        text = CONTROL_CHARACTER.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    if len(text) > MAX_NAME_BYTES // 4 and len(text.encode()) > MAX_NAME_BYTES:
        return short_id(text)
    return text or None


def safe_tool(value: Any) -> str:
    """Return a tool's name within the contract's limit: of a longer one the beginning and the hash of all of it."""
    text = safe_text(value)
    if len(text) > MAX_NAME_BYTES // 4 and max(len(text.encode()), len(text.lower().encode())) > MAX_NAME_BYTES:
        # 32 characters are at most 128 bytes, in lower case 192.
        return f"{text[:32]}-{short_id(text)}"
    return text


def error_of(error: BaseException) -> dict[str, str]:
    """Return what an exception says, in the form in which errors are hashed: by its message, else its name."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return {"name": type(error).__name__, "message": message}


def _text(value: Any) -> str:
    try:
        # A text of a class of its own may say anything of itself.
        return str.__str__(str(value))
    except Exception:  # whatever an agent's objects do
        return _named(value)


def _digest(value: Any, deeper: int) -> str:
    for _ in range(deeper):
        value = [value]
    return digest(value)


class _Replacing:
    """Of one payload: what no reader could read is replaced by something near."""

    def __init__(self) -> None:
        self._left = _MOST_PARTS
        self._around: set[int] = set()
        """The containers that the part lies in: one of them within it would lead round and round."""

    def safe(self, value: Any, depth: int) -> Any:
        self._left -= 1
        try:
            if isinstance(value, Enum):
                value = value.value
            plain = _plain(value)
            if plain is not _NOT_PLAIN:
                return plain
            if self._left < 0 or id(value) in self._around:
                return _named(value)
            if depth == 0:
                return _shown(value)
            self._around.add(id(value))
            try:
                return self._inside(value, depth - 1)
            finally:
                self._around.discard(id(value))
        except Exception:  # an object that cannot even be looked at, or changes meanwhile
            return _named(value)

    def _inside(self, value: Any, depth: int) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        elif callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
            value = value.model_dump()  # pydantic's
        if isinstance(value, Mapping):
            found: dict[str, Any] = {}
            for key, item in value.items():
                name = safe_text(key) if isinstance(key, (str, int, float)) or key is None else _shown(key)
                while name in found:  # 1 and "1" are two keys
                    name += "'"
                found[name] = self.safe(item, depth)
            return found
        if isinstance(value, (set, frozenset)):
            return sorted((self.safe(item, depth) for item in value), key=digest)
        if isinstance(value, (list, tuple)):
            return [self.safe(item, depth) for item in value]
        return _shown(value)


_NOT_PLAIN: Final = object()


def _plain(value: Any) -> Any:
    """Return a part that has no parts as a reader can read it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return safe_text(str(value))
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else _big(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return _NOT_PLAIN


def _big(value: int) -> float | str:
    # Readers take integers beyond 2**53 as the nearest double; there is none for these.
    try:
        return float(value)
    except OverflowError:
        return hex(value)


def _shown(value: Any) -> str:
    try:
        return _ADDRESS.sub("", safe_text(repr(value)))
    except Exception:
        return _named(value)


def _named(value: Any) -> str:
    return f"<{type(value).__name__}>"

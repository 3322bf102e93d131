"""The jars that Apache Kafka consists of, pinned by us: jgo writes hashes down but does not check them.

`pins.json` is the list; `write_pins` writes it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KAFKA_VERSION = "4.4.0"
PINS_FILE = Path(__file__).with_name("pins.json")


@dataclass(frozen=True)
class Jar:
    """One jar by its Maven coordinates, its size in bytes and its SHA-256 in lower-case hex."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def filename(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


@cache
def pinned_jars() -> tuple[Jar, ...]:
    """All jars of the broker."""
    return tuple(Jar(**jar) for jar in json.loads(PINS_FILE.read_text()))


def pins_digest() -> str:
    """Names a folder of jars: other pins, another folder, so that two releases of Loopwarden can share a cache."""
    return hashlib.sha256(PINS_FILE.read_bytes()).hexdigest()[:8]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in lower-case hex."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

"""The jars that Apache Kafka consists of, pinned by us: jgo writes hashes down but does not check them.

`pins.json` is the list; `python -m loopwarden.broker.pins` writes it anew from a real download, after a change of
KAFKA_VERSION.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

KAFKA_VERSION = "4.4.0"
KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"

# Kafka logs through slf4j and brings log4j, but nothing that joins the two. Taken on its own, in the version of the
# log4j that Kafka brings: resolved together with Kafka, its bill of materials would put an older kafka-clients in.
LOG_BINDING = ("org.apache.logging.log4j", "log4j-slf4j-impl")
LOG_BINDING_FOLLOWS = "log4j-core"

_PINS = Path(__file__).with_name("pins.json")


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
    return tuple(Jar(**jar) for jar in json.loads(_PINS.read_text()))


def pins_digest() -> str:
    """Names a folder of jars: other pins, another folder, so that two releases of Loopwarden can share a cache."""
    return hashlib.sha256(_PINS.read_bytes()).hexdigest()[:8]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in lower-case hex."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _write_pins() -> None:
    import jgo
    from jgo.maven import MavenContext

    coordinates = [(jar.groupId, jar.artifactId, jar.version) for jar in jgo.resolve(KAFKA)]
    followed = next(version for _, artifact, version in coordinates if artifact == LOG_BINDING_FOLLOWS)
    coordinates.append((*LOG_BINDING, followed))
    with tempfile.TemporaryDirectory() as folder:
        maven = MavenContext(repo_cache=Path(folder), local_repos=[])
        jars = []
        for group, artifact, version in sorted(coordinates):
            path = maven.project(group, artifact).at_version(version).artifact().resolve()
            jars.append(Jar(group, artifact, version, path.stat().st_size, sha256_of(path)))
    _PINS.write_text(json.dumps([asdict(jar) for jar in jars], indent=1) + "\n")


if __name__ == "__main__":
    _write_pins()

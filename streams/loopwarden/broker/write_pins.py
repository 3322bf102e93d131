"""Writes `pins.json` anew from a real download: `python -m loopwarden.broker.write_pins`, after a new KAFKA_VERSION."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import jgo
from jgo.maven import MavenContext

from loopwarden.broker.pins import KAFKA_VERSION, PINS_FILE, Jar, sha256_of

KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"

# Kafka logs through slf4j and brings log4j, but nothing that joins the two. Taken on its own, in the version of the
# log4j that Kafka brings: resolved together with Kafka, its bill of materials would put an older kafka-clients in.
LOG_BINDING = ("org.apache.logging.log4j", "log4j-slf4j-impl")
LOG_BINDING_FOLLOWS = "log4j-core"


def pins_of_a_download() -> list[Jar]:
    """Every jar that Kafka needs, as Maven Central has it now."""
    coordinates = [(jar.groupId, jar.artifactId, jar.version) for jar in jgo.resolve(KAFKA)]
    followed = next(version for _, artifact, version in coordinates if artifact == LOG_BINDING_FOLLOWS)
    coordinates.append((*LOG_BINDING, followed))
    jars = []
    with tempfile.TemporaryDirectory() as folder:
        maven = MavenContext(repo_cache=Path(folder), local_repos=[])
        for group, artifact, version in sorted(coordinates):
            path = maven.project(group, artifact).at_version(version).artifact().resolve()
            jars.append(Jar(group, artifact, version, path.stat().st_size, sha256_of(path)))
    return jars


if __name__ == "__main__":
    PINS_FILE.write_text(json.dumps([asdict(jar) for jar in pins_of_a_download()], indent=1) + "\n")

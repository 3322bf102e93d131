"""The worker's settings. Each is an environment variable, so that plain `faust` and containers set them alike."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from loopwarden.client import Connection, Security, WrongSetting
from loopwarden.worker.errors import SettingsError
from loopwarden.worker.log import FORMATS

MEMORY = "memory://"
ROCKSDB = "rocksdb://"

# A letter or two are wrong. Other parts of the product, and other people, have variables of their own.
_NEARLY = 0.92


def _default_data_dir() -> Path:
    state_home = os.environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local" / "state") / "loopwarden" / "worker"


@dataclass(frozen=True)
class Settings:
    """What a worker is told from outside."""

    bootstrap_servers: str = "localhost:9092"
    """`LOOPWARDEN_BOOTSTRAP_SERVERS`, or else `KAFKA_BOOTSTRAP_SERVERS`: where Kafka is, HOST:PORT, several with commas
    between."""

    topic_prefix: str = ""
    """`LOOPWARDEN_TOPIC_PREFIX`: stands in front of every topic's name and of the consumer group's. One prefix is one
    trust domain."""

    security: Security = field(default_factory=Security, kw_only=True)
    """`LOOPWARDEN_CLIENT_PROPERTIES`: a file with client settings by Kafka's own names (`security.protocol`,
    `sasl.jaas.config`, `ssl.truststore.location`); each may stand in the environment as well, as in
    `LOOPWARDEN_KAFKA_SECURITY_PROTOCOL`."""

    checkpoint_seconds: float = 1.0
    """`LOOPWARDEN_CHECKPOINT_SECONDS`: the time between two checkpoints. A longer one writes fewer states to the
    changelog; after a crash, up to so many seconds of events are judged again."""

    checkpoint_events: int = 500_000
    """`LOOPWARDEN_CHECKPOINT_EVENTS`: a checkpoint comes earlier once this many events were judged since the last."""

    held_runs: int = 10_000
    """`LOOPWARDEN_HELD_RUNS`: runs kept decoded in memory, over all partitions of this worker (about 10 KB each). The
    others are read from the table when their next event comes."""

    session_seconds: float = 30.0
    """`LOOPWARDEN_SESSION_SECONDS`: after so long without a heartbeat the broker gives the partitions of a dead worker
    to the others. The broker has limits of its own: `group.min.session.timeout.ms` is 6 s by default."""

    data_dir: Path = field(default_factory=_default_data_dir)
    """`LOOPWARDEN_DATA_DIR`: a folder of this worker's own. With `LOOPWARDEN_STORE=rocksdb://` it holds the databases;
    a worker that finds them again recovers in a moment. Else nothing that matters is kept there."""

    store: str = MEMORY
    """`LOOPWARDEN_STORE`: where the states of all runs are held, beside their changelog. `memory://`: in memory, read
    from the changelog at each start. `rocksdb://` (extra `rocksdb`): in databases in `LOOPWARDEN_DATA_DIR`; a start
    reads what was written since, and memory holds the runs in use only."""

    metrics_port: int | None = None
    """`LOOPWARDEN_METRICS_PORT`: serves `/metrics` for Prometheus, `/healthz` and `/readyz` there; without it nothing
    listens."""

    metrics_address: str = "127.0.0.1"
    """`LOOPWARDEN_METRICS_ADDRESS`: where they are served; loopback unless it says otherwise."""

    log_format: str = "text"
    """`LOOPWARDEN_LOG_FORMAT`: `text`, or `json` for an object a line with time, level, logger, message, and run,
    partition and offset where they are known."""

    group_instance_id: str | None = None
    """`LOOPWARDEN_GROUP_INSTANCE_ID`: a name of this worker's own that outlives it (static membership, KIP-345).
    When it comes back within the session, it has its partitions again and the others keep theirs; when it stops for
    good, they wait for the session to end. Two workers must never have the same."""

    @property
    def connection(self) -> Connection:
        """The cluster, as the clients take it."""
        return Connection(self.bootstrap_servers, self.topic_prefix, self.security)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings that the environment gives; what it does not give has its default.

        Raises:
            SettingsError: a variable has a value that cannot be, or its name is nearly that of a setting; the message
                names it.
        """
        variables = os.environ if environment is None else environment
        given = _Given(variables)
        _refuse_misspelt(variables, {f"LOOPWARDEN_{field.name.upper()}" for field in fields(cls)})
        try:
            cluster = Connection.given(environment=variables)
        except WrongSetting as error:
            raise SettingsError(str(error)) from None
        return cls(
            bootstrap_servers=cluster.bootstrap_servers,
            topic_prefix=cluster.topic_prefix,
            security=cluster.security,
            checkpoint_seconds=given.seconds("CHECKPOINT_SECONDS", cls.checkpoint_seconds, 0.01, 60),
            checkpoint_events=given.count("CHECKPOINT_EVENTS", cls.checkpoint_events),
            held_runs=given.count("HELD_RUNS", cls.held_runs),
            session_seconds=given.seconds("SESSION_SECONDS", cls.session_seconds, 1, 1800),
            data_dir=given.folder("DATA_DIR"),
            store=given.store("STORE"),
            metrics_port=given.port("METRICS_PORT"),
            metrics_address=given.text("METRICS_ADDRESS") or cls.metrics_address,
            log_format=given.choice("LOG_FORMAT", FORMATS),
            group_instance_id=given.instance_id("GROUP_INSTANCE_ID"),
        )


class _Given:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        # An empty variable counts as not given: that is how compose files and unit files leave one out.
        return self._environment.get(f"LOOPWARDEN_{name}", "").strip()

    def seconds(self, name: str, default: float, least: float, most: float) -> float:
        text = self.text(name)
        try:
            value = float(text) if text else default
        except ValueError:
            value = 0
        if not least <= value <= most:
            raise _wrong(name, f"must be a number of seconds from {least:g} to {most:g}", text)
        return value

    def count(self, name: str, default: int) -> int:
        text = self.text(name)
        value = int(text) if text.isdecimal() else 0 if text else default
        if value < 1:
            raise _wrong(name, "must be a whole number above 0", text)
        return value

    def port(self, name: str) -> int | None:
        text = self.text(name)
        if text and not (text.isdecimal() and 0 < int(text) < 65536):
            raise _wrong(name, "must be a port, 1 to 65535", text)
        return int(text) if text else None

    def store(self, name: str) -> str:
        store = self.choice(name, (MEMORY, ROCKSDB))
        if store == ROCKSDB and find_spec("rocksdict") is None:
            raise _wrong(name, "needs a package that is not installed (pip install 'loopwarden[rocksdb]')", store)
        return store

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        text = self.text(name) or choices[0]
        if text not in choices:
            raise _wrong(name, f"must be one of {', '.join(choices)}", text)
        return text

    def instance_id(self, name: str) -> str | None:
        text = self.text(name)
        # The broker's rule: that of a topic's name. aiokafka would say it with a traceback.
        if text and (not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", text) or text in (".", "..")):
            raise _wrong(name, "must be at most 249 letters, digits, '.', '_' and '-'", text)
        return text or None

    def folder(self, name: str) -> Path:
        text = self.text(name)
        folder = Path(text).expanduser() if text else _default_data_dir()
        if folder.exists() and not folder.is_dir():
            raise _wrong(name, "must be a folder", str(folder))
        return folder


def _refuse_misspelt(variables: Mapping[str, str], settings: set[str]) -> None:
    for name in variables:
        # Kafka's own settings are checked where they are read.
        if name.startswith("LOOPWARDEN_") and not name.startswith("LOOPWARDEN_KAFKA_") and name not in settings:
            meant = get_close_matches(name, settings, 1, _NEARLY)
            if meant:
                raise SettingsError(f"{name}: must be one of the worker's settings; is {meant[0]} meant?")


def _wrong(name: str, rule: str, found: str) -> SettingsError:
    return SettingsError(f"LOOPWARDEN_{name}: {rule}, got {found!r}")

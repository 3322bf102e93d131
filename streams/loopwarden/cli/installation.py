"""What `loopwarden up` does: broker, topics, policy and worker, one after the other; and the end of all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from loopwarden.broker import LocalBroker, Progress, progress_bar
from loopwarden.cli.ending import Ending
from loopwarden.cli.local_worker import LocalWorker, WorkerEnded
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.policy_applying import applied_in_words, apply_document
from loopwarden.cli.policy_in_force import in_words
from loopwarden.cli.policy_source import told_policy
from loopwarden.cli.restarts import Restarts
from loopwarden.cli.terminal import plural, say
from loopwarden.client import (
    BROKERS_DEFAULT,
    ClusterError,
    Connection,
    create_topics,
    partition_count,
    policies_in_force,
    read_archive,
)
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.topics import Topics, declared_topics

_LOOK_S: Final = 0.3

_ENDING_S: Final = 2.0
"""A broker that stops answering may be about to end: its connections go first."""

_RECOMMENDED: Final = Path("infra/policies/recommended.json5")


class Wanted(NamedTuple):
    """What to bring up; see the options of `loopwarden up`."""

    broker: str | None
    data: Path
    port: int
    partitions: int
    policy: str | None
    first_policy: str | None
    demo: bool
    prefix: str | None
    properties: str | None = None


class BrokerEnded(Exception):
    """The broker that was started here ended by itself."""


class _Running(NamedTuple):
    connection: Connection
    topics: Topics
    broker: LocalBroker | None
    worker: LocalWorker


def bring_up(wanted: Wanted) -> int:
    """Start everything, stay until a signal or an unexpected end, and stop everything; return the exit code.

    Raises:
        BrokerError: the broker cannot be started.
        ClusterError: the cluster cannot be reached, or its topics cannot be created.
        Mistake: there is no such policy file.
        MissingExtra: packages that are needed are not installed.
        SettingsError: a setting of the worker, in the environment, cannot be.
    """
    import loopwarden.worker  # noqa: F401 says which extra is missing

    connection = Connection.given(
        wanted.broker or f"127.0.0.1:{wanted.port}", wanted.prefix, properties_file=wanted.properties
    )
    LocalWorker(connection, wanted.data).check()
    document, file = None, wanted.policy or wanted.first_policy
    if file is not None:
        document = told_policy(file).document
        if document is None:
            say("nothing was started, since the policy is refused")
            return 1
    with Ending() as ending:
        try:
            return _run(wanted, connection, document, ending)
        except KeyboardInterrupt:
            say(f"stopped; the data stay in {wanted.data}")
            return 0


def _run(wanted: Wanted, connection: Connection, document: PolicyDocument | None, ending: Ending) -> int:
    started = time.monotonic()
    broker = worker = None
    with ExitStack() as stops:
        try:
            with progress_bar() as progress:
                if wanted.broker is None:
                    broker = stops.enter_context(_broker(wanted, ending, progress))
                    connection = Connection(broker.bootstrap_servers, connection.topic_prefix)
                progress("Creating topics")
                topics = _topics(wanted, connection)
                if wanted.policy is None and document is not None and read_archive(connection):
                    document = None  # Somebody has applied a policy before: the first one was theirs.
                if document is not None:
                    progress("Applying the policy")
                    why = f"loopwarden up {'--first-policy' if wanted.policy is None else '--policy'}"
                    said = applied_in_words(apply_document(connection, document, None, why, confirm=False))
                worker = stops.enter_context(_worker(wanted, connection, ending, progress))
            running = _Running(connection, topics, broker, worker)
            if document is not None:
                print(said)
            _tell(running, wanted, time.monotonic() - started)
            if wanted.demo:
                _play_demo(running)
            _stay(running)
        except (ClusterError, WorkerEnded, BrokerEnded) as error:
            ending.begin()
            if broker is not None and broker.ended(within=_ENDING_S):
                if worker is not None:
                    worker.kill()  # without a broker it would wait for acknowledgements that never come
                say(broker.ended_in_words())
                return 1
            if not isinstance(error, WorkerEnded):
                raise
            say(str(error))
            return 1
        except KeyboardInterrupt:
            say("stopping in order; Ctrl-C again hurries")
            raise
        except BaseException:
            ending.begin()
            raise


@contextmanager
def _broker(wanted: Wanted, ending: Ending, progress: Progress) -> Iterator[LocalBroker]:
    broker = LocalBroker(wanted.data / "broker", port=wanted.port)
    ending.kills(lambda: broker.pid)
    try:
        broker.start(progress)
        yield broker
    finally:
        broker.stop()


@contextmanager
def _worker(wanted: Wanted, connection: Connection, ending: Ending, progress: Progress) -> Iterator[LocalWorker]:
    worker = LocalWorker(connection, wanted.data, wanted.properties)
    ending.kills(lambda: worker.pid)
    try:
        worker.start(lambda: progress("Starting the worker"))
        yield worker
    except ClusterError:
        worker.kill()  # without a broker it would wait for one
        raise
    finally:
        worker.stop()


def _topics(wanted: Wanted, connection: Connection) -> Topics:
    # All have as many partitions as `agent-events`, the one that is there before the option.
    found = partition_count(connection, connection.topics().events.name)
    topics = declared_topics(connection.topic_prefix, found or wanted.partitions)
    create_topics(connection, topics, replication_factor=1 if wanted.broker is None else BROKERS_DEFAULT)
    return topics


def _play_demo(running: _Running) -> None:
    from loopwarden.cli.playing import DEFAULT_SPEED, play_recordings

    print()
    try:
        play_recordings(running.connection, DEFAULT_SPEED)
    except (ClusterError, Mistake) as error:
        if running.broker is not None and running.broker.ended(within=_ENDING_S):
            raise BrokerEnded from error
        say(f"the demo did not come to its end: {error}")
    else:
        print("\nLoopwarden stays up: Ctrl-C stops all of it.")


def _stay(running: _Running) -> NoReturn:
    """Look after broker and worker; signals end it from outside.

    Raises:
        BrokerEnded: the broker did; the worker cannot do without.
        WorkerEnded: the worker did, again and again.
    """
    restarts = Restarts(running.worker)
    while True:
        if running.broker is not None and running.broker.ended():
            raise BrokerEnded
        restarts.look()
        time.sleep(_LOOK_S)


def _tell(running: _Running, wanted: Wanted, seconds: float) -> None:
    """Say what runs where, and what to do next."""
    connection, topics = running.connection, running.topics
    archive = read_archive(connection)
    states = policies_in_force(connection, archive)
    kept = f"data and log in {wanted.data / 'broker'}" if running.broker else "not started here: it stays up"
    each = plural(topics.events.partitions, "partition")
    print(
        f"Loopwarden is up, after {seconds:.1f} s.\n"
        f"  broker   {connection.bootstrap_servers}  ({kept})\n"
        f"  topics   {topics.events.name}, {topics.verdicts.name} and {len(topics.all()) - 2} more  ({each})\n"
        f"  worker   process {running.worker.pid}  (log in {running.worker.log_file})\n"
        f"  policy   {in_words(states, {policy.number: policy for policy in archive}).removeprefix('in force: ')}\n"
        "Next, in another terminal:"
    )
    if connection.bootstrap_servers not in ("127.0.0.1:9092", "localhost:9092"):
        print(f"  export LOOPWARDEN_BOOTSTRAP_SERVERS={connection.bootstrap_servers}")
    if connection.topic_prefix:
        print(f"  export LOOPWARDEN_TOPIC_PREFIX={connection.topic_prefix}")
    if running.broker is None and wanted.properties is not None:
        print(f"  export LOOPWARDEN_CLIENT_PROPERTIES={wanted.properties}")
    if not archive:
        print(f'  loopwarden policy apply {_RECOMMENDED if _RECOMMENDED.exists() else "FILE"} --why "first policy"')
    print("  loopwarden watch\n  loopwarden demo\n  loopwarden publish FILE\nCtrl-C stops all of it.", flush=True)

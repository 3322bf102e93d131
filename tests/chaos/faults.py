"""What is done to workers, brokers and topics. Each fault breaks something, waits, and mends it before it returns.

`FAULTS` is the table: the scheduler draws from it. The random generator is the fault's own, seeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from signal import Signals
from typing import Any, Final, NamedTuple

from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from loopwarden.client import (
    admin_client,
    append_policy,
    archived,
    following,
    read_archive,
    write_applied,
)
from loopwarden.client.connect import connected
from loopwarden.client.producer import PRODUCER_SETTINGS
from loopwarden_schemas.policy import PolicyDocument

from .scene import Scene

_MOST_WORKERS: Final = 4
_RECOVERS_S: Final = 60.0


class Fault(NamedTuple):
    """A line of the table.

    Attributes:
        inject: Does it and mends it.
        weight: How often it is drawn, compared with the others.
        nodes: How many brokers it needs.
        of_brokers: Whether it breaks brokers or topics: never two of those at once.
        needs_disk: Whether the brokers' data have to lie on a disk of their own.
    """

    inject: Callable[[Scene, Random], None]
    weight: int
    nodes: int = 1
    of_brokers: bool = False
    needs_disk: bool = False


def kill_workers(scene: Scene, random: Random) -> None:
    """SIGKILL, again and again, at moments of no meaning; a new worker takes each one's place at once."""
    for _ in range(random.randint(2, 6)):
        with scene.fleet.borrow() as worker:
            if worker is not None:
                worker.end(Signals.SIGKILL)
                scene.journal.count("kills", f"{worker.name}: SIGKILL")
        # Some while the group is still looking for the one before, some while its partitions are judged again.
        scene.wait(random.choice((0.0, 0.5, 3.0, scene.session_seconds + 2)) + random.random())


def stop_workers(scene: Scene, random: Random) -> None:
    """SIGTERM in the middle of a batch: what was judged is made durable, and the next worker goes on behind it."""
    for _ in range(random.randint(1, 3)):
        with scene.fleet.borrow() as worker:
            if worker is not None:
                since = time.monotonic()
                scene.fleet.stop(worker)
                scene.journal.count("stops", f"{worker.name}: SIGTERM, ended in {time.monotonic() - since:.1f} s")
        scene.wait(random.uniform(0, 2))


def zombies(scene: Scene, random: Random) -> None:
    """SIGSTOP beyond the session, so that others take the partitions over; then SIGCONT, with all it had to say."""
    with scene.fleet.borrow() as worker:
        if worker is None:
            return
        seconds = scene.session_seconds + random.uniform(1, 6)
        worker.send(Signals.SIGSTOP)
        scene.journal.count("pauses", f"{worker.name}: SIGSTOP for {seconds:.1f} s")
        scene.wait(seconds)
        worker.send(Signals.SIGCONT)
        scene.wait(random.uniform(0, 3))
        if random.random() < 0.3:
            worker.end(Signals.SIGKILL)
            scene.journal.count("kills", f"{worker.name}: SIGKILL after its return")


def naps(scene: Scene, random: Random) -> None:
    """SIGSTOP for less than the session: nobody takes anything over."""
    for _ in range(random.randint(1, 3)):
        with scene.fleet.borrow() as worker:
            if worker is not None:
                seconds = random.uniform(0.2, scene.session_seconds * 0.7)
                worker.send(Signals.SIGSTOP)
                scene.journal.count("naps", f"{worker.name}: SIGSTOP for {seconds:.1f} s")
                scene.wait(seconds)
                worker.send(Signals.SIGCONT)


def workers_come_and_go(scene: Scene, random: Random) -> None:
    """Four workers join and leave under load, down to one."""
    for wanted in (_MOST_WORKERS, random.randint(1, 3), random.randint(2, _MOST_WORKERS), 1, scene.workers):
        scene.fleet.scale(wanted)
        scene.journal.count("scalings", f"{wanted} workers")
        scene.wait(random.uniform(0.5, 6))


def late_states(scene: Scene, random: Random) -> None:
    """Old states are written to the changelog once more, as a zombie's socket would deliver them.

    At times when no worker lives: nobody has written over them when the next ones read them.
    """
    with ExitStack() as stack:
        killed = 0
        if random.random() < 0.5:
            while (worker := stack.enter_context(scene.fleet.borrow())) is not None:
                worker.end(Signals.SIGKILL)
                killed += 1
                scene.journal.count("kills", f"{worker.name}: SIGKILL")
        written = _write_old_states(scene, random)
    scene.journal.count("late states", f"{written} old states written late" + (", to no worker" if killed else ""))


def _write_old_states(scene: Scene, random: Random) -> int:
    topic = scene.topics.changelog.name
    old = []
    with following(scene.connection, topic) as follower:
        ends = follower.ends()
        for polled in follower.read({partition: (max(0, end - 500), end) for partition, end in ends.items()}):
            old += [record for record in polled if random.random() < 0.2]
    with connected(KafkaProducer, scene.connection.bootstrap_servers, **PRODUCER_SETTINGS) as producer:
        for record in old:
            producer.send(topic, record.value, key=record.key, partition=record.partition)
        producer.flush(_RECOVERS_S)
    return len(old)


def policies(scene: Scene, random: Random) -> None:
    """The fleet's policy changes: runs that began keep theirs, also when they are judged again."""
    warning = random.randint(2, 8)
    loop_detection = {"enabled": True, "warningThreshold": warning, "criticalThreshold": 2 * warning}
    document = PolicyDocument.from_value({"tools": {"loopDetection": loop_detection}})
    number = append_policy(scene.connection, document, by="chaos", why="chaos", ts=0, log_ends={})
    policy = archived(read_archive(scene.connection), number)
    write_applied(scene.connection, policy, range(scene.topics.events.partitions), 0)
    scene.journal.count("policies", f"policy {number} applied")


def restart_broker(scene: Scene, random: Random) -> None:
    """A broker is stopped in order and comes back."""
    node = random.choice(scene.cluster.node_ids)
    scene.cluster.stop(node)
    scene.journal.count("broker stops", f"broker {node}: stopped")
    _bring_back(scene, random.uniform(0, 8), node)


def kill_broker(scene: Scene, random: Random) -> None:
    """A broker crashes and comes back."""
    node = random.choice(scene.cluster.node_ids)
    scene.cluster.kill(node)
    scene.journal.count("broker kills", f"broker {node}: SIGKILL")
    _bring_back(scene, random.uniform(0, 12), node)


def lose_majority(scene: Scene, random: Random) -> None:
    """Two of three brokers crash: nothing can be written, and no leader chosen."""
    nodes = random.sample(scene.cluster.node_ids, 2)
    for node in nodes:
        scene.cluster.kill(node)
        scene.journal.count("broker kills", f"broker {node}: SIGKILL")
        scene.wait(random.uniform(0, 3))
    _bring_back(scene, random.uniform(0, 8), *nodes)


def freeze_broker(scene: Scene, random: Random) -> None:
    """A broker stands still with its connections open, and goes on."""
    node, seconds = random.choice(scene.cluster.node_ids), random.uniform(1, 10)
    scene.cluster.pause(node)
    scene.journal.count("broker freezes", f"broker {node}: SIGSTOP for {seconds:.1f} s")
    scene.wait(seconds)
    scene.cluster.resume(node)


def refused_states(scene: Scene, random: Random) -> None:
    """The changelog takes no state: each is too large for it. Workers give up, and go on when it is mended."""
    topic = scene.topics.changelog.name
    _configure(scene, topic, {"max.message.bytes": "100"})
    scene.journal.count("changelog refusals", "the changelog takes no records above 100 bytes")
    scene.wait(random.uniform(4, 10))
    _configure(scene, topic, {"max.message.bytes": None})
    scene.journal.tell("the changelog takes records again")


def unreachable_changelog(scene: Scene, random: Random) -> None:
    """The changelog wants three replicas in sync while one broker is down: it takes nothing, all else goes on."""
    topic, node = scene.topics.changelog.name, random.choice(scene.cluster.node_ids)
    _configure(scene, topic, {"min.insync.replicas": "3"})
    scene.cluster.kill(node)
    scene.journal.count("changelog outages", f"broker {node}: SIGKILL; the changelog wants all three")
    scene.wait(random.uniform(5, 15))
    if random.random() < 0.5:
        _configure(scene, topic, {"min.insync.replicas": "2"})
    _bring_back(scene, random.uniform(0, 3), node)
    _configure(scene, topic, {"min.insync.replicas": "2"})
    scene.journal.tell("the changelog takes records again")


def full_disk(scene: Scene, random: Random) -> None:
    """The brokers' disk is full: whichever writes ends. There is space again, and they are started again."""
    assert scene.disk is not None, "the table says that it is needed"
    scene.disk.fill()
    scene.journal.count("full disks", "the brokers' disk is full")
    deadline = time.monotonic() + _RECOVERS_S
    while len(scene.cluster.running) == len(scene.cluster.node_ids) and time.monotonic() < deadline:
        scene.wait(0.2)
    scene.wait(random.uniform(0, 5))
    scene.disk.free()
    # Another one may fall a moment after the first.
    scene.wait(2)
    down = [node for node in scene.cluster.node_ids if node not in scene.cluster.running]
    scene.journal.tell(f"space again; brokers that ended: {', '.join(map(str, down)) or 'none'}")
    if down:
        _bring_back(scene, 0, *down)


def _bring_back(scene: Scene, after: float, *nodes: int) -> None:
    scene.wait(after)
    # One that ended by itself counts as started until it is told that it is over.
    scene.cluster.kill(*nodes)
    scene.cluster.start(*nodes)
    scene.cluster.wait_until_in_sync(_RECOVERS_S)
    scene.journal.tell(f"broker {', '.join(map(str, nodes))}: back")


def _configure(scene: Scene, topic: str, settings: dict[str, str | None]) -> None:
    """Alter settings of a topic; None: as it was declared."""
    declared = next(each for each in scene.topics.all() if each.name == topic).config
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        wanted = declared.get(name) if value is None else value
        changes[name] = ("DELETE", None) if wanted is None else ("SET", wanted)
    with admin_client(scene.connection.bootstrap_servers) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, changes)])


FAULTS: Final[dict[str, Fault]] = {
    "kill_workers": Fault(kill_workers, 8),
    "stop_workers": Fault(stop_workers, 4),
    "zombies": Fault(zombies, 5),
    "naps": Fault(naps, 1),
    "workers_come_and_go": Fault(workers_come_and_go, 3),
    "late_states": Fault(late_states, 3),
    "policies": Fault(policies, 2),
    "restart_broker": Fault(restart_broker, 3, of_brokers=True),
    "kill_broker": Fault(kill_broker, 3, of_brokers=True),
    "freeze_broker": Fault(freeze_broker, 2, of_brokers=True),
    "refused_states": Fault(refused_states, 1, of_brokers=True),
    "full_disk": Fault(full_disk, 1, of_brokers=True, needs_disk=True),
    "lose_majority": Fault(lose_majority, 1, nodes=3, of_brokers=True),
    "unreachable_changelog": Fault(unreachable_changelog, 2, nodes=3, of_brokers=True),
}

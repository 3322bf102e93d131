"""`make chaos`: the guarantees of design.md, tested by breaking things for as long as asked.

    python -m tests.chaos.run --seconds 600 --seed 7

Prints what it does, a table, and one line of JSON. A failure prints its seed, and keeps the folder with the journal,
the logs of brokers and workers, the brokers' data, and the records of the runs that went wrong.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from loopwarden.broker import LocalCluster
from loopwarden.client import Connection, create_topics
from loopwarden_schemas.topics import declared_topics

from .audit import Audit
from .disk import mounted
from .evidence import keep_evidence
from .faults import FAULTS
from .fleet import Fleet
from .load import Load
from .plan import Plan
from .scene import Journal, Scene
from .schedule import episodes
from .workload import deliveries

_DISK_MB: Final = 4096
_JUDGED_S: Final = 120.0

_OF_BROKERS: Final = (
    "broker stops",
    "broker kills",
    "broker freezes",
    "changelog refusals",
    "changelog outages",
    "full disks",
)


class ChaosFailed(Exception):
    """A guarantee does not hold, or the workers do not get on. The message says the seed, and where the evidence is."""


def run(plan: Plan, folder: Path, console: Console) -> dict[str, Any]:
    """Break things according to the plan; return what came of it.

    Raises:
        ChaosFailed: what came of it is wrong. `folder` then holds the evidence.
    """
    journal = Journal(folder / "journal.txt", console)
    began = time.monotonic()
    with _scene(plan, folder, journal) as (scene, load, audit):
        try:
            # Before anything breaks, everything works.
            load.wait_for(round(plan.rate))
            _check(scene, audit)
            _break_things(plan, scene, audit)
            load.stop()
            _check(scene, audit)
            _check_what_is_left(scene, audit)
        except Exception as error:
            # What a fault itself fails on counts, too: it may be what it did.
            keep_evidence(folder / "evidence", scene, error)
            where = f"see {folder}: journal.txt, evidence/, the logs, brokers/"
            raise ChaosFailed(f"{type(error).__name__}: {error}\nseed {plan.seed} of {plan}\n{where}") from error
        return _result(plan, scene, audit, round(time.monotonic() - began))


def _result(plan: Plan, scene: Scene, audit: Audit, seconds: int) -> dict[str, Any]:
    counts, checks = scene.journal.counts, audit.checks
    return {
        "chaos": "ok",
        "seed": plan.seed,
        "seconds": seconds,
        "nodes": plan.nodes,
        "kills": counts["kills"],
        "stops": counts["stops"],
        "pauses": counts["pauses"],
        "broker_faults": sum(count for name, count in counts.items() if name in _OF_BROKERS),
        "faults": dict(sorted(counts.items())),
        "workers_started": scene.fleet.started,
        "workers_gave_up": scene.fleet.gave_up,
        "rebalances": scene.fleet.rebalances,
        "checks": audit.passed,
        "events": checks.oracle.events,
        "runs": checks.oracle.runs,
        "verdicts": checks.verdicts,
        "duplicates": checks.duplicates,
        # Otherwise there were no result.
        "missing": 0,
        "invented": 0,
        "dead_letters": checks.dead_letters,
    }


@contextmanager
def _scene(plan: Plan, folder: Path, journal: Journal) -> Iterator[tuple[Scene, Load, Audit]]:
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(folder / "brokers", _DISK_MB))
        cluster = stack.enter_context(LocalCluster(folder / "brokers" / "data", nodes=plan.nodes))
        connection = Connection(cluster.bootstrap_servers)
        topics = declared_topics(partitions=plan.partitions)
        create_topics(cluster.bootstrap_servers, topics, replication_factor=plan.nodes)
        fleet = Fleet(folder, _environment(plan, cluster.bootstrap_servers), Random(plan.seed), journal.tell)
        stack.callback(fleet.close)
        scene = Scene(cluster, fleet, connection, topics, journal, plan.session_seconds, plan.workers, disk)
        fleet.scale(plan.workers)
        load = Load(cluster.bootstrap_servers, topics.events, deliveries(plan.seed), plan.rate)
        stack.callback(load.close)
        stack.callback(scene.ended.set)
        yield scene, load, Audit(connection, topics)


def _environment(plan: Plan, servers: str) -> Callable[[int], dict[str, str]]:
    """Workers of one group need not be alike: each place has settings of its own, the same for a seed."""

    def environment(place: int) -> dict[str, str]:
        random = Random(plan.seed * 1000 + place)
        settings = {
            "CHECKPOINT_SECONDS": random.choice(("0.1", "0.5", "2")),
            "HELD_RUNS": random.choice(("20", "10000")),
            "STORE": random.choice(("memory://", "rocksdb://")),
            "GROUP_INSTANCE_ID": random.choice(("", f"place-{place}")),
            "BOOTSTRAP_SERVERS": servers,
            "SESSION_SECONDS": str(plan.session_seconds),
            **dict(each.split("=", 1) for each in plan.settings),
        }
        return {f"LOOPWARDEN_{name}": value for name, value in settings.items()}

    return environment


def _break_things(plan: Plan, scene: Scene, audit: Audit) -> None:
    """One episode after the other: some faults, and then everything up to there has to be right."""
    random = Random(plan.seed)
    until = time.monotonic() + plan.seconds
    for episode in episodes(plan, scene, random):
        if not plan.in_turn and time.monotonic() > until:
            return
        scene.journal.tell(f"-- {' and '.join(episode)}")
        _inject(scene, [(name, Random(random.random())) for name in episode])
        _check(scene, audit)


def _check(scene: Scene, audit: Audit) -> None:
    waited = audit.check(_JUDGED_S)
    scene.journal.tell(
        f"   judged after {waited:.1f} s and all as it must be: {audit.checks.oracle.events:,} events,"
        f" {audit.checks.verdicts:,} verdicts, {audit.checks.duplicates:,} duplicates"
    )


def _inject(scene: Scene, faults: Sequence[tuple[str, Random]]) -> None:
    """Inject faults at the same time; return when all are mended."""
    errors: list[BaseException] = []

    def inject(name: str, random: Random) -> None:
        try:
            FAULTS[name].inject(scene, random)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=inject, args=fault, name=fault[0], daemon=True) for fault in faults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _check_what_is_left(scene: Scene, audit: Audit) -> None:
    """The workers end in order; what the changelog holds then is what a new worker goes on from."""
    scene.fleet.scale(0)
    audit.check_states()
    scene.journal.tell(f"all {audit.checks.oracle.runs:,} states as they must be")


def _arguments(arguments: Sequence[str]) -> tuple[Plan, bool]:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    plan = Plan()
    parser.add_argument("--seconds", type=float, default=plan.seconds)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=plan.nodes, help="brokers")
    parser.add_argument("--workers", type=int, default=plan.workers)
    parser.add_argument("--partitions", type=int, default=plan.partitions)
    parser.add_argument("--rate", type=float, default=plan.rate, help="records a second")
    parser.add_argument("--session-seconds", type=float, default=plan.session_seconds)
    parser.add_argument("--fault", dest="faults", action="append", choices=list(FAULTS), help="only these; repeatable")
    parser.add_argument("--in-turn", action="store_true", help="each --fault once, in this order")
    parser.add_argument("--set", dest="settings", action="append", metavar="NAME=VALUE", help="for each worker")
    parser.add_argument("--keep", action="store_true", help="keep the folder in any case")
    given = vars(parser.parse_args(arguments))
    for name in ("faults", "settings"):
        given[name] = tuple(given[name] or ())
    keep: bool = given.pop("keep")
    return plan._replace(**given), keep


def main(arguments: Sequence[str] | None = None) -> int:
    plan, keep = _arguments(sys.argv[1:] if arguments is None else arguments)
    console = Console(stderr=True)
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{plan.seed}-"))
    console.print(f"seed {plan.seed}, folder {folder}", highlight=False)
    # As Ctrl-C does: what was started and mounted goes first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        result = run(plan, folder, console)
    except ChaosFailed as error:
        keep = True
        console.print(f"FAILED: {error}", markup=False, highlight=False, soft_wrap=True)
        print(json.dumps({"chaos": "failed", "seed": plan.seed, "folder": str(folder)}))
        return 1
    finally:
        if not keep:
            shutil.rmtree(folder)
    table = Table(title=f"chaos, seed {plan.seed}: nothing missing, nothing invented", show_header=False)
    for name, value in result.items():
        if isinstance(value, int):
            table.add_row(name.replace("_", " "), f"{value:,}")
    console.print(table)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())

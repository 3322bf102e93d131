"""Work on parts of a log in as many processes as there are cores, with one bar over all of it."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from typing import Any, Final, TypeVar

from loopwarden.cli.log_parts import PartToRead
from loopwarden.cli.mistakes import Mistake
from loopwarden.client import ClusterError
from loopwarden.importers import InputError

_Result = TypeVar("_Result")
Work = Callable[[PartToRead, Callable[[int], None]], _Result]
"""Works on a part of the log, and tells the records it has read. For other processes it has to be picklable."""

_WORTH_PROCESSES: Final = 50_000
"""Records. Another process needs half a second to begin."""


def in_processes(
    parts: Sequence[PartToRead], work: Work[_Result], progress: Callable[[int, int], None]
) -> Iterator[_Result]:
    """Yield what comes of each part, in any order; of a large one in shards, by the keys of its runs.

    Args:
        parts: Of the log.
        work: What is done with each.
        progress: Told the records read so far, and those there are.
    """
    count = cores()
    total = sum(part.size for part in parts)
    if count == 1 or total < _WORTH_PROCESSES:
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress(done, total)

        for part in parts:
            yield work(part, advance)
        return
    shards = _sharded(parts, count, total)
    yield from _run(_dealt(shards, count), work, progress, sum(part.size for part in shards))


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sharded(parts: Sequence[PartToRead], cores: int, total: int) -> list[PartToRead]:
    """Split parts that are larger than a core's share of the whole: each shard reads all of it, and folds its runs."""
    found = []
    for each in parts:
        shards = max(1, math.ceil(cores * each.size / total - 0.25)) if total else 1
        if each.part.runs is not None:
            shards = min(shards, len(each.part.runs))
        found += [replace(each, part=replace(each.part, shard=shard, shards=shards)) for shard in range(shards)]
    return found


def _dealt(parts: list[PartToRead], cores: int) -> list[list[PartToRead]]:
    """Deal them out, the largest first, each to the process that has least."""
    hands: list[list[PartToRead]] = [[] for _ in range(min(cores, len(parts)))]
    for part in sorted(parts, key=lambda each: each.size / each.part.shards, reverse=True):
        min(hands, key=lambda hand: sum(each.size / each.part.shards for each in hand)).append(part)
    return hands


def _run(
    hands: list[list[PartToRead]], work: Work[_Result], progress: Callable[[int, int], None], total: int
) -> Iterator[_Result]:
    context = multiprocessing.get_context("spawn")
    running: dict[Pipe, Any] = {}
    done = 0
    try:
        for hand in hands:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, hand, work), daemon=True)
            process.start()
            theirs.close()
            running[ours] = process
        while running:
            for pipe in wait(list(running), timeout=1):
                assert isinstance(pipe, Pipe)
                try:
                    kind, told = pipe.recv()
                except EOFError:
                    process = running.pop(pipe)
                    process.join()
                    if process.exitcode:
                        raise Mistake(
                            f"a process that judged a part of the log died ({process.exitcode}): is memory short?"
                            " Read less at once: --since, --until, --run"
                        ) from None
                    continue
                if kind == "read":
                    done += told
                elif kind == "failed":
                    raise told
                else:
                    yield told
            progress(done, total)
    finally:
        for pipe, process in running.items():
            process.kill()
            process.join()
            pipe.close()


def _work(pipe: Pipe, hand: list[PartToRead], work: Work[Any]) -> None:
    # Ctrl-C reaches the whole group: the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for part in hand:
            pipe.send(("result", work(part, lambda count: pipe.send(("read", count)))))
    except Exception as error:
        # Not every exception can be pickled; one that is meant for the user is its text.
        meant = isinstance(error, (ClusterError, InputError, Mistake))
        told = Mistake(str(error)) if meant else RuntimeError(traceback.format_exc())
        with suppress(OSError):
            pipe.send(("failed", told))
    finally:
        pipe.close()

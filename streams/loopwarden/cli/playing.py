"""What `loopwarden demo` does: publishes a play at a chosen speed, and follows its verdicts until all is judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import msgpack

from loopwarden.cli.fitting import terminal_width
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.plays import Play, file_play, recorded_play
from loopwarden.cli.scoreboard import Scoreboard
from loopwarden.cli.terminal import plural
from loopwarden.client import Connection, EventProducer, Follower, event_producer, following
from loopwarden_schemas.codec import decode_verdict, encode_event

if TYPE_CHECKING:
    from rich.progress import Progress

DEFAULT_SPEED: Final = 20.0

_SILENCE_S: Final = 30.0
"""A worker tells its progress after each batch: when there is something to judge, so long a silence means none."""

_LOOK_EVERY: Final = 50
"""At full speed, verdicts are looked for after so many events."""


def play_recordings(connection: Connection, speed: float) -> int:
    """Play the recordings that are shipped; return the exit code. `speed` is in calls a second, 0: no limit.

    Raises:
        ClusterError: the cluster cannot be reached.
        Mistake: no worker judges what is played.
    """
    print("recordings of the real OpenClaw; each brings the policy it was made under: warn at 4, block at 8")
    return _play(connection, recorded_play(), speed)


def play_file(connection: Connection, file: str, speed: float) -> int:
    """Play the runs of a file; return the exit code.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        ClusterError, Mistake: as `play_recordings`.
    """
    play = file_play(file)
    if not play.steps:
        raise Mistake(f"{file}: must hold at least one event that can be played")
    return _play(connection, play, speed)


def _play(connection: Connection, play: Play, speed: float) -> int:
    from rich.console import Console

    topics = connection.topics()
    board = Scoreboard(play, terminal_width())
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as open_:
        verdicts = open_.enter_context(following(connection, topics.verdicts.name))
        progress = open_.enter_context(following(connection, topics.progress.name))
        producer = open_.enter_context(event_producer(connection))
        stage = _Stage(play, board, producer, verdicts, Judged(progress), console.print)
        console.print(f"{plural(len(play.runs), 'run')} with {plural(play.calls, 'call')}, {_pace(speed)}:")
        bar = open_.enter_context(_bar(console))
        stage.perform(speed, bar)
        stage.wait_for_the_end(bar)
        bar.stop()
    console.print(board.table(console.width))
    console.print(board.sentence())
    if not board.verdicts:
        console.print("no verdicts: no run loops, or no policy is in force that turns the detectors on;")
        console.print("`loopwarden policy status` says what is in force")
    return 1 if play.bad else 0


def _pace(speed: float) -> str:
    return f"{speed:g} calls a second" if speed else "as fast as it goes"


def _bar(console: Any) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    bar.add_task("calls", total=None)
    return bar


class Judged:
    """How far each partition is judged, by `loop-progress`, from now on."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._follower.start("now")
        self._judged: dict[int, tuple[int, int]] = {}
        self._heard_at = time.monotonic()

    def verdict_ends(self, ends: dict[int, int]) -> dict[int, int] | None:
        """Return where the verdicts of the events below `ends` end in each partition; None: not all are judged yet.

        Raises:
            Mistake: nothing was heard for so long that no worker can be there.
        """
        for record in self._follower.poll(0):
            told = msgpack.unpackb(record.value or b"")
            before = self._judged.get(record.partition, (0, 0))
            self._judged[record.partition] = max(before, (told["judged"], told["verdicts"]))
            self._heard_at = time.monotonic()
        if all(self._judged.get(partition, (0, 0))[0] >= end for partition, end in ends.items()):
            self._heard_at = time.monotonic()
            return {partition: self._judged[partition][1] for partition in ends}
        if time.monotonic() - self._heard_at > _SILENCE_S:
            raise Mistake(
                f"no worker has judged what was published for {_SILENCE_S:.0f} s: is one running on this cluster, with"
                " this prefix? `loopwarden worker` starts one, `loopwarden up` starts all of it"
            )
        return None


class _Stage:
    """One performance: publishes in time, and shows verdicts meanwhile."""

    def __init__(
        self,
        play: Play,
        board: Scoreboard,
        producer: EventProducer,
        verdicts: Follower,
        judged: Judged,
        show: Callable[[Any], None],
    ) -> None:
        self._play = play
        self._board = board
        self._producer = producer
        self._verdicts = verdicts
        self._judged = judged
        self._show = show
        self._verdicts.start("now")

    def perform(self, speed: float, bar: Progress) -> None:
        bar.update(bar.task_ids[0], total=self._play.calls)
        started = time.monotonic()
        calls = 0
        for index, step in enumerate(self._play.steps):
            if speed:
                # A call is two events, its beginning and its outcome.
                self._look_until(started + index / (2 * speed))
            elif index % _LOOK_EVERY == 0:
                self._look(0)
            if index % _LOOK_EVERY == 0:
                self._judged.verdict_ends(self._producer.ends)  # only to hear whether anybody judges
            event = self._play.event(index)
            self._producer.publish(step.run.run_id, encode_event(event), f"event {index}")
            calls += event["type"] == "tool_call.started"
            bar.update(bar.task_ids[0], completed=calls)

    def wait_for_the_end(self, bar: Progress) -> None:
        """Show what is still to come: until every event is judged, and every verdict of them was read."""
        self._producer.flush()
        bar.update(bar.task_ids[0], completed=self._play.calls, description="waiting for the last verdicts")
        while True:
            ends = self._judged.verdict_ends(self._producer.ends)
            if ends is not None and all(self._verdicts.position(each) >= end for each, end in ends.items()):
                return
            self._look(0.1)

    def _look_until(self, when: float) -> None:
        while (left := when - time.monotonic()) > 0:
            self._look(left)

    def _look(self, seconds: float) -> None:
        for record in self._verdicts.poll(seconds):
            try:
                verdict = decode_verdict(record.value or b"", record.content_type)
            except ValueError:
                continue  # somebody else's: `loopwarden watch` tells of it
            line = self._board.see(verdict)
            if line is not None:
                self._show(line)

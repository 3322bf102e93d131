"""What `loopwarden watch-sessions` does: session files followed as they grow, judged, and their verdicts told."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import typer

from loopwarden.cli.fitting import flowed, terminal_width
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.policy_source import RECOMMENDED, fleet_policy
from loopwarden.cli.reading import RECORDED
from loopwarden.cli.summary import Summary
from loopwarden.cli.terminal import colored, plural, printable, say
from loopwarden.cli.watching import COLORS
from loopwarden.client import Connection, EventProducer, event_producer
from loopwarden.importers import BadLine, CaughtUp, Checked, InputError, LeftOut, Recorded
from loopwarden.importers.contract import CheckedItem
from loopwarden.importers.copies import CopiedCalls
from loopwarden.importers.growing import GrowingFile
from loopwarden.importers.places import Folder, usual_folders
from loopwarden.replay import Folder as Judging
from loopwarden_schemas.codec import verdict_json
from loopwarden_schemas.structs import PolicyApplied, Verdict

_EVERY_S: Final = 1.0
"""How often files are looked at. A loop takes at least as long for each of its turns."""

_SEARCH_EVERY: Final = 3
"""How often, of those times, files are searched for that are new."""


def watch_folders(
    given: Sequence[str],
    policy: str | None,
    from_start: bool,
    cluster: Connection | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Watch until Ctrl-C. Without folders: where agents keep their sessions.

    Raises:
        Mistake: a folder is not there; or there are none.
        PolicyError: the policy is not there, or has mistakes.
        ClusterError: the broker is not there, or did not acknowledge an event.
    """
    folders = _folders(given)
    judging = Judging(fleet_policy(policy or RECOMMENDED))
    watch = _Watch(folders, judging, from_start, as_json, verbose)
    with suppress(KeyboardInterrupt), nullcontext() if cluster is None else event_producer(cluster) as producer:
        watch.begin(f"policy: {policy or 'the recommended one'}", cluster)
        while True:
            watch.look(producer)
            time.sleep(_EVERY_S)
    watch.conclude()


def _folders(given: Sequence[str]) -> list[Folder]:
    if given:
        for name in given:
            if not Path(name).exists():
                raise Mistake(f"{name}: there is no such folder")
        return [Folder(Path(name)) for name in given]
    usual = usual_folders()
    if not any(folder.path.exists() for folder in usual):
        looked = "\n".join(f"  {folder.agent}: {folder.path}" for folder in usual)
        raise Mistake(f"no agent keeps its sessions where they usually are; name the folder. Looked at:\n{looked}")
    return usual


class _Watch:
    """Follows the files in folders, judges what they hold, and tells the verdicts about what is new."""

    def __init__(
        self, folders: Sequence[Folder], judging: Judging, from_start: bool, as_json: bool, verbose: bool
    ) -> None:
        self._folders = folders
        self._judging = judging
        self._as_json = as_json
        self._verbose = verbose
        self._files: dict[Path, _Followed] = {}
        self._copies = CopiedCalls()
        self._summary = Summary()
        self._left_out: Counter[str] = Counter()
        self._looks = 0
        self._search(from_start)

    def begin(self, policy: str, cluster: Connection | None) -> None:
        """Tell what is watched."""
        for folder in self._folders:
            if folder.path.exists():
                files = sum(1 for followed in self._files.values() if followed.folder is folder)
                say(f"watching {folder.agent + ': ' if folder.agent else ''}{folder.path}, {plural(files, 'file')}")
        where = f"; events go to {cluster.topics().events.name} at {cluster.bootstrap_servers}" if cluster else ""
        say(f"{policy}{where} (Ctrl-C ends)")

    def look(self, producer: EventProducer | None) -> None:
        """Read what is new in the files, and tell what the judge says to it."""
        self._looks += 1
        if self._looks % _SEARCH_EVERY == 0:
            self._search(from_start=True)
        for followed in list(self._files.values()):
            for item in followed.news(self._verbose):
                if isinstance(item, Checked):
                    self._judge(item, followed, producer)
                elif isinstance(item, Recorded):
                    self._leave_out(LeftOut(item.line, RECORDED), followed)
                else:
                    self._leave_out(item, followed)
        sys.stdout.flush()
        if producer is not None:
            producer.flush()

    def conclude(self) -> None:
        """Tell the counts."""
        say(f"since then: {self._summary.text()}")
        if self._left_out:
            say(f"{plural(self._left_out.total(), 'item')} left out{'' if self._verbose else ', --verbose shows them'}")
        nothing = [followed.name for followed in self._files.values() if followed.nothing]
        if nothing:
            # It may be what an agent of a later version writes.
            named = f": {', '.join(map(printable, nothing))}" if self._verbose else ", --verbose names them"
            say(f"{plural(len(nothing), 'file')} without an event of a run{named}")

    def _search(self, from_start: bool) -> None:
        for folder in self._folders:
            for path in folder.sessions():
                if path not in self._files:
                    self._files[path] = _Followed(path, folder, from_start, self._copies)

    def _judge(self, item: Checked, followed: _Followed, producer: EventProducer | None) -> None:
        if isinstance(item.event, PolicyApplied):
            self._leave_out(LeftOut(item.line, "a policy.applied: this watch has a policy of its own"), followed)
            return
        folded = self._judging.fold(item.event)
        if not followed.new:
            return
        self._summary.add(folded)
        if folded.rejected is not None:
            self._leave_out(BadLine(item.line, f"{folded.rejected.reason}: {folded.rejected.detail}"), followed)
        for verdict in folded.verdicts:
            self._tell(verdict, followed)
        if producer is not None:
            producer.publish(item.event.run_id, item.record, f"of {followed.name}, line {item.line}")

    def _leave_out(self, item: BadLine | LeftOut, followed: _Followed) -> None:
        what = item.reason if isinstance(item, BadLine) else item.what
        self._left_out[what] += 1
        if self._verbose:
            say(f"{followed.name}, line {item.line}: left out: {what}")

    def _tell(self, verdict: Verdict, followed: _Followed) -> None:
        if self._as_json:
            sys.stdout.buffer.write(verdict_json(verdict) + b"\n")
            return
        count = "-" if verdict.count is None else f"{verdict.count}/{verdict.threshold}"
        parts = [
            time.strftime("%H:%M:%S", time.localtime(verdict.ts / 1000)),
            f"{verdict.action:<5}",
            f"{verdict.phase:<7}",
            f"{verdict.reason:<25}",
            followed.folder.agent or "-",
            printable(verdict.run_id),
            printable(verdict.tool or "-"),
            count,
            printable(verdict.message),
        ]
        line = flowed(parts, terminal_width())
        # The colour after the line is broken: it has no width.
        typer.echo(line.replace(parts[1], colored(parts[1], COLORS[verdict.action]), 1))


class _Followed:
    """One file that is followed.

    Attributes:
        name: What to call it.
        folder: Where it was found.
        nothing: Whether it was read, and no event of a run was in it, nor anything near one.
    """

    def __init__(self, path: Path, folder: Folder, from_start: bool, copies: CopiedCalls) -> None:
        self.name = str(path)
        self.folder = folder
        self._file = GrowingFile(path, from_start, sought=folder.path != path, copies=copies)
        self._items: Iterator[CheckedItem] | None = self._file.items()
        self._held_something = False
        self.nothing = False

    @property
    def new(self) -> bool:
        """Whether the item that was returned last is new."""
        return self._file.new

    def news(self, verbose: bool) -> Iterator[Checked | BadLine | LeftOut | Recorded]:
        """Return what is in the file that was not read yet; that which is not new, too, where something is."""
        while self._items is not None and self._file.changed():
            context = not self._file.new
            self.nothing = not self._held_something
            try:
                for item in self._items:
                    if isinstance(item, CaughtUp):
                        break
                    self._held_something, self.nothing = True, False
                    yield item
            except InputError as error:
                self._items = None
                if verbose:
                    say(f"not followed: {error}")
            if not context:
                return

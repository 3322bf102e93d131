"""What the import commands share: files of one format to events as JSON lines."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

import orjson

from loopwarden.cli.given_files import GivenFiles
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.reading import Reading, reading_of, same_file
from loopwarden.cli.terminal import plural, say
from loopwarden.importers import Format
from loopwarden.importers.copies import CopiedCalls


def import_files(
    files: Sequence[str], output: str | None, expected: tuple[Format, ...], verbose: bool, follow: bool = False
) -> int:
    """Write the events of the files, one JSON line each, and tell the counts; return the exit code.

    Raises:
        InputError: a file is not there, or has another format.
        Mistake: the output cannot be written.
    """
    for name in files:
        if output is not None and same_file(name, output):
            raise Mistake(f"{output}: must not be one of the files that are read")
    bad = 0
    elsewhere: dict[str, str] = {}
    given = GivenFiles(files, verbose)
    copies = CopiedCalls()
    with written(output) as stream:
        for file in given.files():
            with (
                given.passing_over(file),
                reading_of(file.name, verbose, expected, sought=file.sought, follow=follow, copies=copies) as reading,
            ):
                bad += _import(reading, stream, elsewhere, follow)
    given.conclude()
    return 1 if bad else 0


def _import(reading: Reading, stream: BinaryIO, elsewhere: dict[str, str], follow: bool) -> int:
    """Write the events of one file; return its bad lines.

    Runs that an earlier file has are left out: they would count as redelivered.
    """
    runs: set[str] = set()
    repeated: set[str] = set()
    counts: Counter[str] = Counter()
    # Whoever follows a file ends that by Ctrl-C.
    with suppress(KeyboardInterrupt) if follow else nullcontext():
        for item in reading.events():
            run_id = str(item.wire["run_id"])
            if run_id not in elsewhere:
                runs.add(run_id)
                counts[str(item.wire["type"])] += 1
                stream.write(orjson.dumps(item.wire) + b"\n")
                if follow:
                    stream.flush()
            elif run_id not in repeated:
                repeated.add(run_id)
                reading.refuse(item.line, f"run {run_id!r} is in {elsewhere[run_id]} already: it is left out here")
    elsewhere.update(dict.fromkeys(runs, reading.name))
    _tell(reading, counts, len(runs))
    return reading.bad


def _tell(reading: Reading, counts: Counter[str], runs: int) -> None:
    reading.conclude()
    told = [plural(runs, "run"), plural(counts.total(), "event"), plural(counts["tool_call.started"], "call")]
    for kind, noun in (("tool_call.blocked", "refused call"), ("compaction", "compaction")):
        if counts[kind]:
            told.append(plural(counts[kind], noun))
    say(f"{reading.name}: {', '.join(told)}")


@contextmanager
def written(output: str | None) -> Iterator[BinaryIO]:
    """The file that output goes to; None or `-`: standard output.

    Raises:
        Mistake: it cannot be written.
    """
    if output is None or output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        stream = Path(output).open("wb")  # noqa: SIM115 closed below; opening alone may fail as a mistake
    except OSError as error:
        raise Mistake(f"{output}: cannot be written: {error.strerror}") from None
    with stream:
        yield stream

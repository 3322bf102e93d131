"""The files that a command is given, and those in the folders that it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from loopwarden.cli.terminal import plural, say
from loopwarden.importers import STDIN, InputError
from loopwarden.importers.opencode_storage import is_storage
from loopwarden.importers.places import session_files


class GivenFile(NamedTuple):
    """A file to read. `sought`: it was come upon in a folder, and may be something else."""

    name: str
    sought: bool = False


class GivenFiles:
    """Files and folders as they were given. What in a folder is no file of runs is passed over, and counted."""

    def __init__(self, given: Sequence[str], verbose: bool) -> None:
        self._given = given
        self._verbose = verbose
        self._passed_over = 0
        self.folders = any(map(_is_folder, given))
        """Whether there are folders among them."""

    def files(self) -> Iterator[GivenFile]:
        """Return the files, those of a folder in the order of their paths.

        Raises:
            InputError: there is no session in a folder.
        """
        for name in self._given:
            if not _is_folder(name):
                yield GivenFile(name)
                continue
            empty = True
            for path in session_files(Path(name)):
                empty = False
                yield GivenFile(str(path), sought=True)
            if empty:
                raise InputError(f"{name}: there is no .jsonl or .json file in this folder")

    @contextmanager
    def passing_over(self, file: GivenFile) -> Iterator[None]:
        """While it is entered: a file that was come upon, and turns out to be something else, is only counted."""
        try:
            yield
        except InputError as error:
            if not file.sought:
                raise
            self._passed_over += 1
            if self._verbose:
                say(f"passed over: {error}")

    def conclude(self) -> None:
        """Tell how many files were passed over."""
        if self._passed_over and not self._verbose:
            say(f"{plural(self._passed_over, 'file')} passed over, being no files of runs; --verbose shows which")


def _is_folder(name: str) -> bool:
    return name != STDIN and Path(name).is_dir() and not is_storage(Path(name))

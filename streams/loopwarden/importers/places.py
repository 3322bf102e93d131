"""Where agents keep their session files, and which files among others are session files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.importers.opencode_storage import is_storage


class Place(NamedTuple):
    """Where an agent keeps its sessions.

    Attributes:
        agent: Its name.
        variable: The variable of the environment that moves its folder.
        usual: The folder where it is not moved, below the home folder.
        below: What stands between that folder and the sessions.
        files: Which files there are sessions; * stands for folders, too. Others may hold what is none of our business.
    """

    agent: str
    variable: str
    usual: str
    below: str
    files: str


PLACES: Final = (
    Place("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects", "*.jsonl"),
    Place("Codex", "CODEX_HOME", ".codex", "sessions", "*rollout-*.jsonl"),
    Place("opencode", "XDG_DATA_HOME", ".local/share", "opencode", "opencode.db"),
    Place("opencode", "XDG_DATA_HOME", ".local/share", "opencode/storage/part", "*.json"),
    Place("Gemini", "GEMINI_CLI_HOME", "", ".gemini/tmp", "*/chats/*"),
    Place("OpenClaw", "OPENCLAW_STATE_DIR", ".openclaw", "agents", "*/sessions/*.jsonl"),
    Place("pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions", "*.jsonl"),
)

_ENDINGS: Final = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
_DATABASES: Final = ("opencode.db",)


class Folder(NamedTuple):
    """A folder of session files: `agent` is whose, where that is known; `files` as in `Place`."""

    path: Path
    agent: str | None = None
    files: str = "*"

    def sessions(self) -> Iterator[Path]:
        """Return the files that are there now, in the order of their paths."""
        if self.path.is_file():
            yield self.path
        for path in session_files(self.path, storage_whole=False):
            if fnmatchcase(path.relative_to(self.path).as_posix(), self.files):
                yield path


def usual_folders(environment: Mapping[str, str] = os.environ) -> list[Folder]:
    """Return where each agent keeps its sessions on this machine, whether it is there or not."""
    found = []
    for place in PLACES:
        moved = environment.get(place.variable)
        home = Path(moved).expanduser() if moved else Path.home() / place.usual
        found.append(Folder(home / place.below, place.agent, place.files))
    return found


def session_files(folder: Path, storage_whole: bool = True) -> Iterator[Path]:
    """Return what in a folder, or below, may be a session: by its name, in the order of the paths.

    `storage_whole`: the storage of opencode is one such, not each of its files.
    """
    if storage_whole and is_storage(folder):
        yield folder
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        # Gone meanwhile, or somebody else's.
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from session_files(path, storage_whole)
        elif entry.name in _DATABASES or (entry.name.endswith(_ENDINGS) and entry.is_file()):
            yield path

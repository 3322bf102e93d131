"""The folder of one broker: its data, its settings, its log, and the lock that lets only one broker use them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from loopwarden.broker.errors import BrokerFailed, DataDirInUse

# How long the broker of a process that was killed may take to go, too.
_LEAVING_S = 5.0


@dataclass(frozen=True)
class DataDir:
    """The places in the folder."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def unfinished_data(self) -> Path:
        return self.root / "data.unfinished"

    @property
    def properties(self) -> Path:
        return self.root / "server.properties"

    @property
    def log(self) -> Path:
        return self.root / "kafka.log"

    @property
    def temporary(self) -> Path:
        """Where the JVM unpacks native libraries; what a killed one leaves there is of no use to the next."""
        return self.root / "tmp"


def lock(folder: DataDir) -> int:
    """Creates the folder where it is missing and takes its lock: a file descriptor, to be closed, and passed on to the
    broker so that the lock holds as long as either lives.

    Raises:
        DataDirInUse: a live broker has it.
        BrokerFailed: the folder cannot be written.
    """
    try:
        folder.temporary.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise BrokerFailed(f"{folder.root}: the broker's data folder must be writable, got {error}") from error
    deadline = time.monotonic() + _LEAVING_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise DataDirInUse(
                f"{folder.root}: is in use by a running broker ({owner or 'just starting'}); stop it first, or use"
                " another data folder"
            )
        time.sleep(0.05)
    return descriptor


def _try_lock(descriptor: int) -> bool:
    import fcntl  # Unix only, and creating topics on a cluster elsewhere needs no lock

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_owner(descriptor: int, text: str) -> None:
    """Says in the lock file who has it, for the message that another one gets."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)

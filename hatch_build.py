"""The build hook: with `LOOPWARDEN_COMPILE=1` the wheel carries the judge, and what brings it its events, compiled to
machine code by mypyc.

The sources stay as they are and stay the only ones: mypyc reads the type annotations. Without it the wheel is pure
Python, which judges the same at half the speed. An editable install is never compiled: no old machine code hides an
edit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = {"streams/loopwarden": "loopwarden", "schemas/loopwarden_schemas": "loopwarden_schemas"}

COMPILED = (
    "loopwarden_schemas/canonical.py",
    "loopwarden_schemas/codec.py",
    "loopwarden_schemas/digests.py",
    "loopwarden/judge/**/*.py",
    "loopwarden/worker/lane.py",
    "loopwarden/worker/runs.py",
    # Of each event that is judged again. Not what goes from one process to another: a frozen dataclass of C cannot be
    # unpickled.
    "loopwarden/replay/beginnings.py",
    "loopwarden/replay/course.py",
    "loopwarden/replay/fold_events.py",
    "loopwarden/replay/records.py",
    "loopwarden/replay/replayed.py",
    "loopwarden/replay/what_if.py",
)

# Left as they are: msgspec structs and tables of words, which gain nothing.
INTERPRETED = ("loopwarden/judge/findings.py", "loopwarden/judge/messages.py")

_SETUP = """
import sys
from setuptools import setup
from mypyc.build import mypycify
setup(name="loopwarden", packages=[], ext_modules=mypycify(["--ignore-missing-imports", *sys.argv[1:]], opt_level="3",
      debug_level="0"), script_args=["--quiet", "build_ext", "--inplace"])
"""


class CompileJudge(BuildHookInterface[Any]):
    """Puts the extension modules beside the sources they were compiled from."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return ["mypy[mypyc]>=1.15", "setuptools>=77"] if _asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not _asked_for():
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="loopwarden-compile-"))
        for source, package in PACKAGES.items():
            shutil.copytree(Path(self.root, source), self._scratch / package, ignore=shutil.ignore_patterns("*.so"))
        found = {str(f.relative_to(self._scratch)) for pattern in COMPILED for f in self._scratch.glob(pattern)}
        files = sorted(found.difference(INTERPRETED))
        compiling = subprocess.run(
            [sys.executable, "-c", _SETUP, *files], cwd=self._scratch, capture_output=True, text=True
        )
        if compiling.returncode:
            raise SystemExit(
                f"The judge could not be compiled (a C compiler and the headers of Python are needed; without "
                f"LOOPWARDEN_COMPILE=1 a pure Python wheel is built):\n{compiling.stdout}{compiling.stderr}"
            )
        for extension in self._scratch.rglob("*.so"):
            if "build" not in extension.relative_to(self._scratch).parts:
                build_data["force_include"][str(extension)] = str(extension.relative_to(self._scratch))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_scratch"):
            shutil.rmtree(self._scratch)


def _asked_for() -> bool:
    return os.environ.get("LOOPWARDEN_COMPILE") == "1"

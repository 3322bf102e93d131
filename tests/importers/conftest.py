"""Files that other people's agents wrote lie beside the repository; they are not ours to carry."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def sample() -> Callable[[str], Path]:
    return lambda name: SAMPLES / name


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """Return the path of a shared file, or skip the test that needs it."""
    root = Path(os.environ.get("LOOPWARDEN_SHARED", Path(__file__).parents[2].parent / "shared"))

    def find(name: str) -> Path:
        path = root / name
        if not path.exists():
            pytest.skip(f"{path} is not here: set LOOPWARDEN_SHARED to the folder that has it")
        return path

    return find

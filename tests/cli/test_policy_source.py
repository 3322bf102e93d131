from __future__ import annotations

from pathlib import Path

import pytest

from loopwarden.cli.policy_source import RECOMMENDED, fleet_policy

ROOT = Path(__file__).parents[2]


def test_the_recommended_policy_is_that_of_the_file() -> None:
    file = fleet_policy(str(ROOT / "infra" / "policies" / "recommended.json5"))

    assert fleet_policy(RECOMMENDED).resolve(None) == file.resolve(None)
    assert file.resolve(None).detectors_on


def test_a_file_of_that_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(RECOMMENDED).write_text("{ tools: { loopDetection: { enabled: false } } }")

    assert not fleet_policy(RECOMMENDED).resolve(None).detectors_on

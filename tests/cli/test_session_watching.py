from __future__ import annotations

from pathlib import Path

from loopwarden.cli.session_watching import RECOMMENDED
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_file import read_policy_file

ROOT = Path(__file__).parents[2]


def test_the_recommended_policy_is_that_of_the_file() -> None:
    file = read_policy_file(str(ROOT / "infra" / "policies" / "recommended.json5")).accepted()

    assert PolicyDocument.from_value(RECOMMENDED).resolve(None) == file.resolve(None)

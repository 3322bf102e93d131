"""The JSON form: stable, documented, and the whole of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from loopwarden.recordings import recordings
from loopwarden.report import Timeline
from loopwarden.report.as_json import SCHEMA_FILE, from_json, json_schema, to_json


@pytest.mark.parametrize("name", [name.removeprefix("openclaw-") for name in recordings()])
def test_a_run_comes_back_from_its_json_form(recorded: Callable[[str], Timeline], name: str) -> None:
    run = recorded(name)
    assert from_json(to_json(run)) == run


def test_the_json_form_says_its_schema_first(recorded: Callable[[str], Timeline]) -> None:
    assert to_json(recorded("poll")).startswith('{"schema":1,"run_id":')


def test_fields_of_a_later_version_are_no_mistake(recorded: Callable[[str], Timeline]) -> None:
    run = recorded("poll")
    assert from_json(json.dumps({**json.loads(to_json(run)), "new": 1})) == run


def test_the_json_schema_beside_the_code_is_not_stale() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == json_schema()

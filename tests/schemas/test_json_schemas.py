from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopwarden_schemas.json_schemas import generate

GENERATED = Path(__file__).resolve().parents[2] / "schemas" / "generated"


@pytest.mark.parametrize("name", sorted(generate()))
def test_the_schema_beside_the_package_is_what_the_models_say(name: str) -> None:
    assert (GENERATED / name).read_text(encoding="utf-8") == generate()[name], "stale: run `make schemas`"


def test_nothing_else_lies_among_the_generated_schemas() -> None:
    assert {path.name for path in GENERATED.iterdir()} == set(generate())


def test_every_event_type_has_its_definition() -> None:
    schema = json.loads(generate()["event.schema.json"])
    kinds = {
        definition["properties"]["type"]["const"]
        for definition in schema["$defs"].values()
        if "type" in definition["properties"]
    }
    assert kinds == set(schema["discriminator"]["mapping"])

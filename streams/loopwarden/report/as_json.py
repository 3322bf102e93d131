"""A run as JSON: the `Timeline` itself. Its JSON Schema lies beside this file, and a test fails when it is stale.

`python -m loopwarden.report.as_json` writes it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from loopwarden.report.model import Timeline

SCHEMA_FILE: Final = Path(__file__).with_name("timeline.schema.json")


def to_json(run: Timeline) -> str:
    """Return the JSON form, on one line."""
    return run.model_dump_json(by_alias=True) + "\n"


def from_json(text: str | bytes) -> Timeline:
    """Return the run of a JSON form.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return Timeline.model_validate_json(text)


def json_schema() -> str:
    """Return the text of its JSON Schema."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Timeline.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json_schema(), encoding="utf-8")

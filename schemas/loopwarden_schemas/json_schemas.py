"""The JSON Schemas generated from the models: `python -m loopwarden_schemas.json_schemas [DIR]` writes them.

They are kept beside the package, in `schemas/generated/`; a test fails when they are stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from loopwarden_schemas.events import EVENT
from loopwarden_schemas.policy_models import PolicyFile
from loopwarden_schemas.verdicts import Verdict

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def generate() -> dict[str, str]:
    """Return the text of each schema by its file name."""
    schemas: dict[str, dict[str, Any]] = {
        "event.schema.json": EVENT.json_schema(by_alias=True, ref_template="#/$defs/{model}"),
        "verdict.schema.json": Verdict.model_json_schema(by_alias=True),
        "policy.schema.json": PolicyFile.model_json_schema(by_alias=True),
    }
    return {
        name: json.dumps({"$schema": _DIALECT, **schema}, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }


def write(folder: Path) -> None:
    """Write every schema into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generate().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "generated")

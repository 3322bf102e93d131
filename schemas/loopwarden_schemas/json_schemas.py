"""The JSON Schemas and the AsyncAPI document, generated: `python -m loopwarden_schemas.json_schemas [DIR]` writes them.

They are kept beside the package, in `schemas/generated/`; a test fails when they are stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from loopwarden_schemas.asyncapi import document
from loopwarden_schemas.events import EVENT
from loopwarden_schemas.policy_models import PolicyFile
from loopwarden_schemas.verdicts import Verdict

# Of the contract: the events' and verdicts' `schema`, and a second number for what was added to it.
_CONTRACT_VERSION = "1.0"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def generate() -> dict[str, str]:
    """Return the text of each file by its name."""
    schemas: dict[str, dict[str, Any]] = {
        "event.schema.json": EVENT.json_schema(by_alias=True, ref_template="#/$defs/{model}"),
        "verdict.schema.json": Verdict.model_json_schema(by_alias=True),
        "policy.schema.json": PolicyFile.model_json_schema(by_alias=True),
    }
    written = {name: {"$schema": _DIALECT, **schema} for name, schema in schemas.items()}
    written["asyncapi.json"] = document(_CONTRACT_VERSION)
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in written.items()}


def write(folder: Path) -> None:
    """Write every file into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generate().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "generated")

"""The AsyncAPI document: valid, and saying of the topics what is declared."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from loopwarden_schemas.asyncapi import document
from loopwarden_schemas.json_schemas import generate
from loopwarden_schemas.topics import declared_topics

SCHEMA = Path(__file__).parent / "asyncapi" / "asyncapi-3.0.0.schema.json.gz"


@pytest.fixture(scope="module")
def official() -> jsonschema.Draft7Validator:
    with gzip.open(SCHEMA, "rt", encoding="utf-8") as file:
        return jsonschema.Draft7Validator(json.load(file))


def test_the_document_is_valid_asyncapi(official: jsonschema.Draft7Validator) -> None:
    told = [f"{list(error.absolute_path)}: {error.message}" for error in official.iter_errors(document("1.0"))]
    assert told == []


def test_the_official_schema_refuses_what_is_no_asyncapi(official: jsonschema.Draft7Validator) -> None:
    broken = document("1.0")
    broken["channels"]["agentEvents"]["bindings"]["kafka"]["partitions"] = "8"
    assert not official.is_valid(broken)


def test_every_declared_topic_has_its_channel_with_its_settings() -> None:
    channels = {channel["address"]: channel["bindings"]["kafka"] for channel in document("1.0")["channels"].values()}
    assert set(channels) == {topic.name for topic in declared_topics().all()}
    for topic in declared_topics().all():
        kafka = channels[topic.name]
        assert kafka["partitions"] == topic.partitions
        told = {
            name: ",".join(value) if isinstance(value, list) else str(value)
            for name, value in kafka["topicConfiguration"].items()
        }
        assert told == topic.config


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        here = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return here.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere() -> None:
    written = document("1.0")
    for reference in references(written):
        if reference.startswith("./"):
            assert reference.removeprefix("./") in generate()
            continue
        found = written
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found

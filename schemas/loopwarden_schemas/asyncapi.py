"""The AsyncAPI 3 document of the topics: what lies on each, with which key and settings, and who sends and receives it.

Written beside the JSON Schemas, to which it refers, by `json_schemas`.
"""

from __future__ import annotations

from typing import Any, Final

from loopwarden_schemas.topics import DEFAULT_PARTITIONS, Topic, declared_topics

_VERSION: Final = "3.0.0"
_BINDING: Final = "0.5.0"
_JSON_SCHEMA: Final = "application/schema+json;version=2020-12"

_NUMBERS: Final = frozenset(("retention.ms", "retention.bytes", "max.message.bytes", "min.compaction.lag.ms"))

_OFFSET: Final = {"type": "integer", "minimum": 0}
_DECIMAL: Final = {"type": "string", "pattern": "^[0-9]+$"}
_PLACE: Final = {
    "source-topic": {"type": "string"},
    **dict.fromkeys(("source-partition", "source-offset", "source-index"), _DECIMAL),
}
"""Headers that say which event a dead letter is about."""


def document(contract_version: str) -> dict[str, Any]:
    """Return the document of the topics without a prefix, with the default number of partitions."""
    topics = declared_topics()
    channels = {
        "agentEvents": _channel(topics.events, {"event": "agentEvent", "events": "agentEvents"}),
        "loopVerdicts": _channel(topics.verdicts, {"verdict": "verdict"}),
        "loopProgress": _channel(topics.progress, {"progress": "progress"}),
        "loopPolicies": _channel(topics.policies, {"policy": "policy"}),
        "deadLetters": _channel(topics.dead, {"deadLetter": "deadLetter", "replayNote": "replayNote"}),
        "runStates": _channel(topics.changelog, {"runState": "runState"}),
    }
    return {
        "asyncapi": _VERSION,
        "info": {
            "title": "Loopwarden",
            "version": contract_version,
            "description": (
                "What happens in each run of an agent goes to agent-events; Loopwarden folds it, one run at a time, and"
                " publishes verdicts that warn about, block or abort a run that loops. Every name may have a prefix."
                f" All topics but loop-policies have the same number of partitions, {DEFAULT_PARTITIONS} by default;"
                " keys are partitioned as Kafka's Java client does (murmur2)."
            ),
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/msgpack",
        "servers": {
            "kafka": {
                "host": "{host}:{port}",
                "protocol": "kafka-secure",
                "variables": {"host": {"default": "localhost"}, "port": {"default": "9092"}},
                "description": "Apache Kafka 3.0 or newer, or what speaks its protocol.",
                "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in _security_schemes()],
                "bindings": {"kafka": {"bindingVersion": _BINDING}},
            }
        },
        "channels": channels,
        "operations": _operations(topics.app_id),
        "components": {"messages": _messages(), "securitySchemes": _security_schemes()},
    }


def _channel(topic: Topic, messages: dict[str, str]) -> dict[str, Any]:
    return {
        "address": topic.name,
        "description": f"{topic.note[0].upper()}{topic.note[1:]}.",
        "servers": [{"$ref": "#/servers/kafka"}],
        "messages": {name: {"$ref": f"#/components/messages/{message}"} for name, message in messages.items()},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": topic.partitions,
                "topicConfiguration": {name: _configured(name, value) for name, value in topic.config.items()},
                "bindingVersion": _BINDING,
            }
        },
    }


def _configured(name: str, value: str) -> Any:
    if name == "cleanup.policy":
        return value.split(",")
    return int(value) if name in _NUMBERS else value


def _operations(app_id: str) -> dict[str, Any]:
    def operation(action: str, channel: str, summary: str, group: str | None = None) -> dict[str, Any]:
        kafka: dict[str, Any] = {"bindingVersion": _BINDING}
        if group is not None:
            kafka["groupId"] = {"type": "string", "enum": [group]}
        return {
            "action": action,
            "channel": {"$ref": f"#/channels/{channel}"},
            "summary": summary,
            "bindings": {"kafka": kafka},
        }

    return {
        "gatewaySendsEvents": operation("send", "agentEvents", "A gateway says what happens in its runs."),
        "workerReceivesEvents": operation("receive", "agentEvents", "A worker judges its partitions.", app_id),
        "workerSendsVerdicts": operation("send", "loopVerdicts", "On the partition number of the event judged."),
        "workerSendsProgress": operation("send", "loopProgress", "After each batch's verdicts are acknowledged."),
        "workerSendsDeadLetters": operation("send", "deadLetters", "What could not be read or judged."),
        "workerSendsStates": operation("send", "runStates", "The changed states of each checkpoint."),
        "workerReceivesStates": operation("receive", "runStates", "To recover the states of its partitions."),
        "workerReceivesPolicies": operation("receive", "loopPolicies", "The archive, to its end."),
        "operatorSendsReplays": operation(
            "send", "agentEvents", "The events of dead letters, once the cause is mended."
        ),
        "operatorSendsReplayNotes": operation("send", "deadLetters", "Beside each letter that was replayed."),
        "runnerReceivesVerdicts": operation("receive", "loopVerdicts", "Those of its runs' partitions."),
        "runnerReceivesProgress": operation("receive", "loopProgress", "To know when its orders are certain."),
        "operatorSendsPolicies": operation("send", "loopPolicies", "Only administrators may."),
    }


def _messages() -> dict[str, Any]:
    run_key = {"type": "string", "maxLength": 256, "description": "The run's id."}
    contents = "MessagePack, or JSON; without the header content-type the first byte says which."
    content_type = {"content-type": {"type": "string", "enum": ["application/msgpack", "application/json"]}}
    return {
        "agentEvent": {
            "title": "One event of a run",
            "contentType": "application/msgpack",
            "description": contents,
            "headers": {"type": "object", "properties": content_type},
            "payload": _refers_to("event.schema.json"),
            "bindings": _key(run_key),
        },
        "agentEvents": {
            "title": "Events of one run",
            "contentType": "application/msgpack",
            "description": f"{contents} Each element stands alone.",
            "headers": {"type": "object", "properties": content_type},
            "payload": {
                "schemaFormat": _JSON_SCHEMA,
                "schema": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 100,
                    "items": {"$ref": "./event.schema.json"},
                },
            },
            "bindings": _key(run_key),
        },
        "verdict": {
            "title": "A verdict",
            "contentType": "application/msgpack",
            "description": "Consumers take each verdict_id once, in the order of (begun, n).",
            "headers": {
                "type": "object",
                "required": ["cause-partition", "cause-offset", "cause-append-time"],
                "properties": {
                    **content_type,
                    **dict.fromkeys(("cause-partition", "cause-offset", "cause-append-time"), _DECIMAL),
                },
            },
            "payload": _refers_to("verdict.schema.json"),
            "bindings": _key(run_key),
        },
        "progress": {
            "title": "How far a partition is judged",
            "contentType": "application/msgpack",
            "description": "Readers take the highest they have seen.",
            "payload": {
                "type": "object",
                "required": ["judged", "verdicts"],
                "properties": {
                    "judged": {**_OFFSET, "description": "Every event of agent-events below this offset is judged,"},
                    "verdicts": {**_OFFSET, "description": "and its verdicts lie below this one of loop-verdicts."},
                },
            },
            "bindings": _key({**_DECIMAL, "description": "The partition's number."}),
        },
        "policy": {
            "title": "A policy of the fleet",
            "contentType": "application/msgpack",
            "description": "Its number is its offset. Records are kept for ever, and have no key.",
            "payload": {
                "schemaFormat": _JSON_SCHEMA,
                "schema": {
                    "type": "object",
                    "required": ["policy", "by", "why"],
                    "properties": {
                        "schema": {"const": 1},
                        "policy": {"$ref": "./policy.schema.json"},
                        "digest": {"type": "string"},
                        "by": {"type": "string"},
                        "why": {"type": "string"},
                        "ts": {"type": "integer", "description": "Milliseconds since the epoch."},
                        "log_ends": {
                            "type": "object",
                            "additionalProperties": _OFFSET,
                            "description": "Where each partition of agent-events ended before.",
                        },
                    },
                },
            },
        },
        "deadLetter": {
            "title": "What could not be read or judged",
            "contentType": "application/octet-stream",
            "description": "The original key and bytes; of a record too large for the broker once more, the beginning.",
            "headers": {
                "type": "object",
                "required": ["reason", "detail", *_PLACE, "append-time"],
                "properties": {
                    "reason": {"type": "string", "description": "A stable code."},
                    "detail": {"type": "string", "description": "For people."},
                    "content-type": {"type": "string", "description": "The original record's, where it had one."},
                    **_PLACE,
                    **dict.fromkeys(("append-time", "original-size", "original-key-size"), _DECIMAL),
                },
            },
            "payload": {"type": "string", "format": "binary"},
        },
        "replayNote": {
            "title": "That the event of a dead letter was sent again",
            "contentType": "application/octet-stream",
            "description": "The key and the place of the letter; it has no value.",
            "headers": {
                "type": "object",
                "required": [*_PLACE, "replayed-by", "replayed-why"],
                "properties": {**_PLACE, "replayed-by": {"type": "string"}, "replayed-why": {"type": "string"}},
            },
            "payload": {"type": "string", "format": "binary", "maxLength": 0},
        },
        "runState": {
            "title": "The state of a run",
            "contentType": "application/msgpack",
            "description": "The worker's own: compact, versioned, and for nobody else to read or write.",
            "payload": {"type": "string", "format": "binary"},
            "bindings": _key(run_key),
        },
    }


def _refers_to(file: str) -> dict[str, Any]:
    return {"schemaFormat": _JSON_SCHEMA, "schema": {"$ref": f"./{file}"}}


def _key(schema: dict[str, Any]) -> dict[str, Any]:
    return {"kafka": {"key": schema, "bindingVersion": _BINDING}}


def _security_schemes() -> dict[str, Any]:
    return {
        "scramSha512": {"type": "scramSha512"},
        "scramSha256": {"type": "scramSha256"},
        "plain": {"type": "plain"},
        "clientCertificate": {"type": "X509"},
    }

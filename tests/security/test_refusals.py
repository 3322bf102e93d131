"""Who is not let in, or may not, is told so soon, with the way out and without a secret."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

SOON_S = 10
"""Promised to users."""


def told(ran: Any) -> str:
    assert ran.code == 2, ran
    assert ran.seconds < SOON_S
    assert "Traceback" not in ran.err
    [line] = [line for line in ran.err.splitlines() if line.startswith("loopwarden: ")]
    return str(line)


@pytest.mark.parametrize(
    ("command", "right", "topic"),
    [
        (("publish", "-"), "Write", "events"),
        (("watch", "--no-follow"), "Read", "verdicts"),
        (("history", "--run", "r"), "Read", "events"),
        (("override", "abort", "--run", "r", "--by", "ada", "--why", "test"), "Write", "events"),
        (("policy", "apply", "policy.json5", "--why", "test"), "Write", "policies"),
        (("policy", "status"), "Read", "policies"),
        (("policy", "show"), "Read", "policies"),
        (("selftest",), "Read", "verdicts"),
        (("dead", "list"), "Read", "dead"),
        (("topics", "plan"), "DescribeConfigs", "events"),
        (("topics", "check"), "DescribeConfigs", "events"),
        (("topics", "apply"), "DescribeConfigs", "events"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_principal_without_the_right_is_told_topic_right_principal_and_way_out(
    secured: Any, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], right: str, topic: str
) -> None:
    monkeypatch.chdir(secured.folder)
    Path("policy.json5").write_text("{ tools: { loopDetection: { enabled: true } } }")
    Path("stdin").write_text('{"schema": 1, "type": "run.started", "event_id": "e", "run_id": "r", "ts": 1}\n')
    file = secured.properties("stranger")
    with Path("stdin").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        line = told(secured.run(*command, "--client-properties", file, "--prefix", secured.topics.prefix))
    name = getattr(secured.topics, topic).name
    assert f"User:stranger must have the right {right} on topic {name}" in line
    assert "topics acls" in line


def test_who_may_not_create_topics_is_told(secured: Any, run: Callable[..., Any]) -> None:
    file = secured.properties("stranger")
    line = told(run("topics", "apply", "--client-properties", file, "--prefix", "nobodys-"))
    assert "User:stranger must have the right" in line
    assert "on topic nobodys-agent-events" in line


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_told_with_user_and_mechanism_and_never_shown(
    secured: Any, run: Callable[..., Any], mechanism: str
) -> None:
    password = secured.broker.add_user("gateway")
    shown = password.replace("\\", "\\\\\\\\").replace('"', '\\\\"')
    file = secured.properties("gateway", "SASL_SSL", mechanism)
    text = file.read_text()
    assert shown in text
    wrong = secured.folder / "wrong.properties"
    wrong.write_text(text.replace(shown, "hunter2-of-the-tests"))
    for debug in ((), ("--debug",)):
        ran = run("watch", "--client-properties", wrong, *debug)
        assert (ran.code, ran.seconds < SOON_S) == (2, True)
        assert f"the broker must let User:gateway in by {mechanism}, but refuses" in ran.err
        assert "hunter2" not in ran.out + ran.err
        assert password not in ran.out + ran.err


def test_a_broker_with_a_certificate_of_another_authority_is_not_trusted(secured: Any, run: Callable[..., Any]) -> None:
    other = secured.folder / "other-ca.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    file = secured.folder / "other.properties"
    text = secured.properties("gateway").read_text()
    assert str(secured.broker.ca_file) in text
    file.write_text(text.replace(str(secured.broker.ca_file), str(other)))
    line = told(run("watch", "--client-properties", file))
    assert f"certificate must be for that host, and signed by a CA in {other}" in line


def test_without_a_client_certificate_where_one_is_asked_for(secured: Any, run: Callable[..., Any]) -> None:
    file = secured.folder / "bare.properties"
    lines = secured.properties("gateway", "SSL").read_text().splitlines()
    file.write_text("\n".join(line for line in lines if "keystore" not in line))
    line = told(run("watch", "--client-properties", file))
    assert "must let this client in with no certificate (ssl.keystore.location), but refuses" in line


@pytest.mark.parametrize(("listener", "protocol"), [("SASL_SSL", "PLAINTEXT"), ("PLAINTEXT", "SSL")])
def test_another_protocol_than_the_listeners_is_told(secured: Any, listener: Any, protocol: str) -> None:
    from loopwarden.client import BrokerUnavailable, Connection, Security, admin_client

    security = Security(protocol, truststore=str(secured.broker.ca_file))
    connection = Connection(secured.broker.bootstrap(listener), security=security)
    with pytest.raises(BrokerUnavailable) as refused, admin_client(connection, connect_timeout=1):
        pass
    assert f"by {protocol}, but what listens there does not answer as one" in str(refused.value)
    assert "Does that listener ask for another security.protocol?" in str(refused.value)


def test_a_worker_with_a_wrong_password_ends_with_2_and_does_not_show_it(secured: Any) -> None:
    file = secured.folder / "wrong.properties"
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="hunter2";'
    file.write_text(
        f"bootstrap.servers={secured.broker.bootstrap('SASL_SSL')}\nsecurity.protocol=SASL_SSL\n"
        f"sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={jaas}\nssl.truststore.location={secured.broker.ca_file}\n"
    )
    command = [sys.executable, "-W", "ignore", "-m", "loopwarden.cli", "worker", "--client-properties", str(file)]
    ran = subprocess.run([*command, "--log-level", "debug"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2, ran.stderr
    assert "the broker must let User:ada in by SCRAM-SHA-512, but refuses" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


def test_help_shows_nothing_of_the_environment(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWARDEN_KAFKA_SASL_JAAS_CONFIG", 'X required password="hunter2";')
    monkeypatch.setenv("LOOPWARDEN_KAFKA_SSL_KEY_PASSWORD", "hunter2")
    for command in (("--help",), ("watch", "--help"), ("worker", "--help"), ("topics", "acls", "--help")):
        ran = run(*command)
        assert (ran.code, "hunter2" in ran.out + ran.err) == (0, False)

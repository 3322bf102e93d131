"""Client settings by Kafka's own names, from a file and from the environment."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from loopwarden.client import WrongSetting
from loopwarden.client.properties import client_properties, parsed

SECRET = "hunter2-of-the-tests"


def read(text: str) -> dict[str, str]:
    return {name: value for _, name, value in parsed(text)}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("  a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# a=b\n! c=d\n\n e=f", {"e": "f"}),
        ("a=b\\\n   c\nd=e", {"a": "bc", "d": "e"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=\\u00e4\\t\\n\\x", {"a": "ä\t\nx"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_a_properties_file_is_read_as_java_reads_it(text: str, meant: dict[str, str]) -> None:
    assert read(text) == meant


def test_what_the_broker_of_the_tests_writes_is_read_back() -> None:
    from loopwarden.broker.properties import render

    written = {"ssl.truststore.location": "C:\\certs\\ä.pem", "sasl.jaas.config": 'X required p="a\\"=\\\\";'}
    assert read(render(written)) == written


def test_every_property_may_stand_in_the_environment_and_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.type=PEM\n")
    environment = {
        "LOOPWARDEN_CLIENT_PROPERTIES": str(file),
        "LOOPWARDEN_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "LOOPWARDEN_KAFKA_SASL_MECHANISM": "",
        "OTHER": "x",
    }
    found = client_properties(None, environment)
    assert found["security.protocol"] == ("SASL_SSL", "LOOPWARDEN_KAFKA_SECURITY_PROTOCOL")
    assert found["ssl.truststore.type"] == ("PEM", f"{file}, line 2")
    assert set(found) == {"security.protocol", "ssl.truststore.type"}


def test_the_option_comes_before_the_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL")
    found = client_properties(str(file), {"LOOPWARDEN_CLIENT_PROPERTIES": "/nowhere"})
    assert found["security.protocol"].value == "SSL"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("security.protocl", "security.protocol"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("sasl.jaas.conf", "sasl.jaas.config"),
        ("bootstrap.server", "bootstrap.servers"),
    ],
)
def test_a_slip_is_refused_with_the_name_that_was_meant(tmp_path: Path, name: str, meant: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"# about\n{name}={SECRET}\n")
    with pytest.raises(WrongSetting) as refused:
        client_properties(str(file), {})
    assert str(refused.value).startswith(f"{file}, line 2: {name}: ")
    assert f"{meant}?" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sasl.mechanisms", "sasl.mechanism"),
        ("sasl.password", "sasl.jaas.config"),
        ("ssl.ca.location", "ssl.truststore.location"),
    ],
)
def test_the_names_of_librdkafka_are_refused_with_kafkas_own(tmp_path: Path, name: str, meant: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"{name}={SECRET}")
    with pytest.raises(WrongSetting, match=f"librdkafka.*here {meant}$") as refused:
        client_properties(str(file), {})
    assert SECRET not in str(refused.value)


def test_a_property_that_is_not_used_is_named_once_and_its_value_never(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"client.id={SECRET}\nsecurity.protocol=SSL\n")
    with caplog.at_level(logging.WARNING, "loopwarden.client"):
        assert set(client_properties(str(file), {})) == {"security.protocol"}
        client_properties(str(file), {})
    assert caplog.messages == [f"{file}, line 1: client.id: is not used here, and ignored"]


def test_a_value_that_went_on_without_a_backslash_is_not_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f'sasl.jaas.config=ScramLoginModule required\n  "{SECRET}";\n')
    with caplog.at_level(logging.WARNING, "loopwarden.client"):
        client_properties(str(file), {})
    assert caplog.messages == [f"{file}, line 2: is not used here, and ignored"]


def test_config_providers_are_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("config.providers=file")
    with pytest.raises(WrongSetting, match="LOOPWARDEN_KAFKA_SASL_JAAS_CONFIG"):
        client_properties(str(file), {})


def test_a_file_that_is_not_there_or_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongSetting, match=r"^--client-properties: .*nowhere\.properties: No such file"):
        client_properties(str(tmp_path / "nowhere.properties"), {})
    binary = tmp_path / "store.jks"
    binary.write_bytes(b"\xfe\xed\xfe\xed\x00\x00")
    with pytest.raises(WrongSetting, match=r"^LOOPWARDEN_CLIENT_PROPERTIES: must name a properties file"):
        client_properties(None, {"LOOPWARDEN_CLIENT_PROPERTIES": str(binary)})

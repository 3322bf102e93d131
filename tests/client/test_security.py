"""TLS and SASL from Kafka's properties; and no secret anywhere that is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from loopwarden.client import Connection, Security, WrongSetting
from loopwarden.client.jaas import login

SECRET = "hunter2-of-the-tests"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def given(**properties: str) -> Security:
    """The security of these properties; a name's dots are underscores here."""
    environment = {f"LOOPWARDEN_KAFKA_{name.upper()}": value for name, value in properties.items()}
    return Connection.given(environment=environment).security


def refusal(**properties: str) -> str:
    with pytest.raises(WrongSetting) as refused:
        given(**properties)
    assert SECRET not in str(refused.value)
    return str(refused.value)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


def client_pem(authority: trustme.CA, password: bytes | None = None) -> tuple[str, str]:
    """A private key as PKCS#8, and its certificate chain."""
    issued = authority.issue_cert("client", common_name="client")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pkcs8 = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return pkcs8.decode(), "".join(each.bytes().decode() for each in issued.cert_chain_pems)


def test_without_properties_a_cluster_asks_for_nothing() -> None:
    assert given() == Security()
    assert given().for_kafka_python() == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("config", "meant"),
    [
        (f'{SCRAM} required username="ada" password="p";', ("SCRAM", "ada", "p")),
        (f'{PLAIN} required  password="p"\n username="ada" ;', ("PLAIN", "ada", "p")),
        (f"{PLAIN} required username='ada' password='p';", ("PLAIN", "ada", "p")),
        (f"{PLAIN} required username=ada password=p;", ("PLAIN", "ada", "p")),
        (f'{PLAIN} required username="a=;da" password="p\\"=\\\\;";', ("PLAIN", "a=;da", 'p"=\\;')),
        (f'{PLAIN} required username="ada" password="p" user_x="y";', ("PLAIN", "ada", "p")),
    ],
)
def test_jaas_gives_user_name_and_password(config: str, meant: tuple[str, str, str]) -> None:
    assert login(config, "here") == meant


@pytest.mark.parametrize(
    "config",
    [
        "",
        SECRET,
        f'{SCRAM} required username="ada" password="{SECRET}"',
        f'{SCRAM} required username="ada" password="{SECRET};',
        f'{SCRAM} username="ada" password="{SECRET}";',
        f'{SCRAM} required user="ada" password="{SECRET}";',
        f'{SCRAM} required username="ada" password="{SECRET}" tokenauth="true";',
        f'com.sun.security.auth.module.Krb5LoginModule required password="{SECRET}";',
        f'{SCRAM} required username="ada" password="{SECRET}"; {SCRAM} required;',
    ],
)
def test_what_is_no_login_is_refused_with_the_form_and_without_the_secret(config: str) -> None:
    with pytest.raises(WrongSetting, match=r"^here: sasl\.jaas\.config") as refused:
        login(config, "here")
    assert SECRET not in str(refused.value)


def test_a_login_must_have_the_module_of_its_mechanism() -> None:
    jaas = f'{PLAIN} required username="ada" password="{SECRET}";'
    told = refusal(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=jaas)
    assert "ScramLoginModule" in told


def test_sasl_needs_a_mechanism_and_a_login() -> None:
    assert "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in refusal(security_protocol="SASL_SSL")
    assert "LOOPWARDEN_KAFKA_SASL_JAAS_CONFIG" in refusal(security_protocol="SASL_SSL", sasl_mechanism="PLAIN")
    assert refusal(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI").startswith("LOOPWARDEN_KAFKA_SASL_MECHANISM")
    assert "must be one of PLAINTEXT, SSL" in refusal(security_protocol=SECRET)


def test_what_would_be_left_out_without_a_protocol_is_refused(ca: Path) -> None:
    jaas = f'{PLAIN} required username="ada" password="{SECRET}";'
    assert "needs security.protocol SASL_SSL" in refusal(sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert "nothing would be encrypted" in refusal(ssl_truststore_location=str(ca))


def test_secrets_are_in_no_representation(ca: Path, authority: trustme.CA) -> None:
    key, chain = client_pem(authority, SECRET.encode())
    security = given(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{PLAIN} required username="ada" password="{SECRET}";',
        ssl_truststore_location=str(ca),
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain=chain,
        ssl_key_password=SECRET,
    )
    assert security.password == security.key_password == SECRET
    for shown in (repr(security), str(security), repr(Connection(security=security)), f"{security}"):
        assert SECRET not in shown
        assert "PRIVATE KEY" not in shown
        assert "ada" in shown


def test_a_truststore_and_a_keystore_as_pem_are_loaded_from_files(ca: Path, authority: trustme.CA) -> None:
    keystore = ca.with_name("client.pem")
    keystore.write_text("".join(client_pem(authority)))
    security = given(
        security_protocol="SSL",
        ssl_truststore_location=str(ca),
        ssl_truststore_type="PEM",
        ssl_keystore_location=str(keystore),
    )
    [trusted] = security.ssl_context().get_ca_certs()
    assert trusted["subject"]
    assert security.ssl_context().check_hostname


def test_pem_may_stand_in_one_line(ca: Path, authority: trustme.CA) -> None:
    key, chain = (re.sub(r"\n", " ", text) for text in client_pem(authority))
    security = given(
        security_protocol="SSL",
        ssl_truststore_certificates=ca.read_text().replace("\n", " "),
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain=chain,
    )
    assert len(security.ssl_context().get_ca_certs()) == 1


def test_a_wrong_or_missing_key_password_is_told_and_nobody_is_asked_at_the_terminal(
    ca: Path, authority: trustme.CA
) -> None:
    keystore = ca.with_name("client.pem")
    keystore.write_text("".join(client_pem(authority, b"right")))
    store = {
        "security_protocol": "SSL",
        "ssl_truststore_location": str(ca),
        "ssl_keystore_location": str(keystore),
    }
    assert given(**store, ssl_key_password="right").key_password == "right"
    assert "no ssl.key.password is given" in refusal(**store)
    assert f"ssl.keystore.location: {keystore}" in refusal(**store, ssl_key_password=SECRET)
    assert "ssl.key.password must be its password" in refusal(**store, ssl_key_password=SECRET)


@pytest.mark.parametrize(
    ("head", "kind", "command"),
    [(b"\xfe\xed\xfe\xed", "JKS", "keytool -importkeystore"), (b"\x30\x82\x01", "PKCS12", "openssl pkcs12 -in")],
)
def test_a_java_keystore_is_refused_with_the_command_that_makes_pem_of_it(
    tmp_path: Path, head: bytes, kind: str, command: str
) -> None:
    store = tmp_path / "trust.store"
    store.write_bytes(head + bytes(20))
    told = refusal(security_protocol="SSL", ssl_truststore_location=str(store))
    assert f"must be PEM: Python reads no {kind}. {command}" in told
    told = refusal(
        security_protocol="SSL",
        ssl_truststore_type=kind.lower(),
        ssl_truststore_location=str(store),
        ssl_truststore_password=SECRET,
    )
    assert f"Python reads no {kind}" in told


def test_stores_that_are_none_are_told_with_their_property(tmp_path: Path, ca: Path) -> None:
    assert "No such file" in refusal(security_protocol="SSL", ssl_truststore_location=str(tmp_path / "none.pem"))
    other = tmp_path / "text.pem"
    other.write_text("not a certificate")
    assert "must be a PEM file" in refusal(security_protocol="SSL", ssl_truststore_location=str(other))
    other.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "must hold certificates of CAs" in refusal(security_protocol="SSL", ssl_truststore_location=str(other))
    both = {"ssl_truststore_location": str(ca), "ssl_truststore_certificates": ca.read_text()}
    assert "must not stand beside" in refusal(security_protocol="SSL", **both)
    password = {"ssl_truststore_location": str(ca), "ssl_truststore_password": SECRET}
    assert "is not for PEM" in refusal(security_protocol="SSL", **password)
    assert "both, or none" in refusal(security_protocol="SSL", ssl_keystore_key=SECRET)


def test_only_an_empty_algorithm_takes_a_certificate_for_any_host(ca: Path, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    for value, checked in (("https", True), ("", False)):
        file.write_text(
            f"security.protocol=SSL\nssl.truststore.location={ca}\nssl.endpoint.identification.algorithm={value}\n"
        )
        security = Connection.given(environment={"LOOPWARDEN_CLIENT_PROPERTIES": str(file)}).security
        assert security.ssl_context().check_hostname is checked
    # A variable that is empty counts as not given: nothing is switched off by it.
    store = {"security_protocol": "SSL", "ssl_truststore_location": str(ca)}
    assert given(**store, ssl_endpoint_identification_algorithm="").check_hostname
    assert not given(**store, ssl_endpoint_identification_algorithm="none").check_hostname
    assert "must be https" in refusal(**store, ssl_endpoint_identification_algorithm="htps")


def test_the_principal_is_the_user_or_said_in_words() -> None:
    assert Security().principal == "User:ANONYMOUS"
    assert Security("SASL_SSL", "PLAIN", "ada").principal == "User:ada"
    assert "client.pem" in Security("SSL", keystore="client.pem").principal

"""How a client is let in by a cluster, and knows it: TLS and SASL, from Kafka's properties to Python's clients."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopwarden.client.errors import WrongSetting
from loopwarden.client.jaas import login
from loopwarden.client.properties import VARIABLE_PREFIX, Property

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_MAGIC_OF_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")

_TO_PEM: Final = {
    "JKS": "keytool -importkeystore -srckeystore {file} -destkeystore store.p12 -deststoretype PKCS12, then openssl"
    " pkcs12 -in store.p12 {wanted}",
    "PKCS12": "openssl pkcs12 -in {file} {wanted}",
}
_WANTED: Final = {"truststore": "-nokeys -out ca.pem", "keystore": "-nodes -out client.pem"}


@dataclass(frozen=True)
class Security:
    """The security of a connection. Made by `security_given`; without anything it is a cluster that asks for nothing.

    Attributes:
        protocol: `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
        mechanism: Of SASL.
        username, password: For SASL.
        truststore: A PEM file with the CAs that may sign the broker's certificate; None, and no `trusted`: the
            system's.
        trusted: Those CAs themselves, as PEM.
        keystore: A PEM file with the client's key and certificate chain.
        certificate_chain, key: Both themselves, as PEM.
        key_password: Of an encrypted key.
        check_hostname: Whether the broker's certificate must be for the name it was reached by.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    truststore: str | None = None
    trusted: str | None = field(default=None, repr=False)
    keystore: str | None = None
    certificate_chain: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether a user name and a password are given to the broker."""
        return self.protocol.startswith("SASL_")

    @property
    def principal(self) -> str:
        """Who the broker takes this client for, in words where only the broker knows it."""
        if self.uses_sasl:
            return f"User:{self.username}"
        if self.uses_tls and (self.keystore or self.certificate_chain):
            return f"the principal of the client certificate{f' in {self.keystore}' if self.keystore else ''}"
        return "User:ANONYMOUS"

    def for_kafka_python(self) -> dict[str, Any]:
        """Return the settings of kafka-python's clients. Files are read now, so that renewed ones are seen.

        Raises:
            WrongSetting: certificates or a key cannot be read.
        """
        return self._for_python()

    def for_aiokafka(self) -> dict[str, Any]:
        """Return the settings of aiokafka's clients, likewise."""
        return self._for_python()

    def ssl_context(self) -> ssl.SSLContext:
        """Return what makes and checks TLS connections.

        Raises:
            WrongSetting: certificates or a key cannot be read.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_hostname
        self._load_trusted(context)
        if self.keystore or self.certificate_chain:
            self._load_client_certificate(context)
        return context

    def _for_python(self) -> dict[str, Any]:
        # Both name these alike.
        settings: dict[str, Any] = {"security_protocol": self.protocol}
        if self.uses_sasl:
            settings["sasl_mechanism"] = self.mechanism
            settings["sasl_plain_username"] = self.username
            settings["sasl_plain_password"] = self.password
        if self.uses_tls:
            settings["ssl_context"] = self.ssl_context()
        return settings

    def _load_trusted(self, context: ssl.SSLContext) -> None:
        text, where = self.trusted, "ssl.truststore.certificates"
        if text is None and self.truststore is None:
            context.load_default_certs()
            return
        if text is None:
            assert self.truststore is not None
            where = f"ssl.truststore.location: {self.truststore}"
            text = _read_store("truststore", self.truststore)
        certificates = [each for each in _pem_blocks(text) if "-----BEGIN CERTIFICATE-----" in each]
        try:
            if not certificates:
                raise ssl.SSLError("there is none")
            context.load_verify_locations(cadata="\n".join(certificates))
        except ssl.SSLError as error:
            raise WrongSetting(f"{where}: must hold certificates of CAs as PEM: {_reason(error)}") from None

    def _load_client_certificate(self, context: ssl.SSLContext) -> None:
        if self.keystore:
            where, text = f"ssl.keystore.location: {self.keystore}", _read_store("keystore", self.keystore)
        else:
            where, text = "ssl.keystore.key and ssl.keystore.certificate.chain", f"{self.key}\n{self.certificate_chain}"
        # Python takes a certificate chain from a file only; this one only its owner can read, and it goes at once.
        descriptor, name = tempfile.mkstemp(prefix="loopwarden-", suffix=".pem")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write("\n".join(_pem_blocks(text)))
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(name, password=self.key_password or "")
        except (ssl.SSLError, ValueError) as error:
            given = "ssl.key.password must be its password" if self.key_password else "no ssl.key.password is given"
            password = f", and {given} if it is encrypted"
            reason = _reason(error) if isinstance(error, ssl.SSLError) else "the password is none"
            raise WrongSetting(
                f"{where}: must hold a private key and its certificate chain as PEM{password}: {reason}"
            ) from None
        finally:
            Path(name).unlink()


def security_given(properties: Mapping[str, Property]) -> Security:
    """Return the security that the properties ask for; TLS files are read once, to find mistakes early.

    Raises:
        WrongSetting: one has a value that cannot be, or one that is needed is missing. No message has a secret.
    """
    protocol = _choice(properties, "security.protocol", PROTOCOLS, "PLAINTEXT")
    with_tls, with_sasl = protocol in ("SSL", "SASL_SSL"), protocol.startswith("SASL_")
    user: dict[str, Any] = {}
    if with_sasl:
        user = _sasl(properties, protocol)
    elif "sasl.jaas.config" in properties or "sasl.mechanism" in properties:
        given = properties.get("sasl.mechanism") or properties["sasl.jaas.config"]
        raise WrongSetting(
            f"{given.where}: SASL needs security.protocol SASL_SSL (or SASL_PLAINTEXT), got {protocol}: the broker"
            " would not be told who this is"
        )
    stores = _stores(properties) if with_tls else {}
    if not with_tls:
        for name, given in properties.items():
            if name.startswith("ssl.") and name != "ssl.endpoint.identification.algorithm":
                raise WrongSetting(
                    f"{given.where}: {name} needs security.protocol SSL or SASL_SSL, got {protocol}: nothing would be"
                    " encrypted"
                )
    security = Security(protocol=protocol, **user, **stores)
    if with_tls:
        security.ssl_context()
    return security


def _sasl(properties: Mapping[str, Property], protocol: str) -> dict[str, Any]:
    mechanism = _choice(properties, "sasl.mechanism", MECHANISMS, None)
    config = properties.get("sasl.jaas.config")
    if config is None:
        raise WrongSetting(
            f"sasl.jaas.config: must be given with security.protocol {protocol}, in the properties file or as"
            f" {VARIABLE_PREFIX}SASL_JAAS_CONFIG"
        )
    family, username, password = login(config.value, config.where)
    if not mechanism.startswith(family):
        raise WrongSetting(
            f"{config.where}: sasl.jaas.config must have the login module of sasl.mechanism {mechanism}:"
            f" {'PlainLoginModule' if mechanism == 'PLAIN' else 'ScramLoginModule'}"
        )
    return {"mechanism": mechanism, "username": username, "password": password}


def _stores(properties: Mapping[str, Property]) -> dict[str, Any]:
    for store in ("truststore", "keystore"):
        _check_store(properties, store)
    has_chain = "ssl.keystore.certificate.chain" in properties
    if has_chain != ("ssl.keystore.key" in properties):
        raise WrongSetting("ssl.keystore.key and ssl.keystore.certificate.chain: must be given both, or none of them")
    check = properties.get("ssl.endpoint.identification.algorithm")
    if check is not None and check.value.strip().lower() not in ("https", "", "none"):
        raise WrongSetting(
            f"{check.where}: ssl.endpoint.identification.algorithm must be https, or nothing (none in the environment)"
            " to take a certificate for any host"
        )
    value = {name: given.value for name, given in properties.items()}
    return {
        "truststore": value.get("ssl.truststore.location"),
        "trusted": value.get("ssl.truststore.certificates"),
        "keystore": value.get("ssl.keystore.location"),
        "certificate_chain": value.get("ssl.keystore.certificate.chain"),
        "key": value.get("ssl.keystore.key"),
        "key_password": value.get("ssl.key.password"),
        "check_hostname": check is None or check.value.strip().lower() == "https",
    }


def _check_store(properties: Mapping[str, Property], store: str) -> None:
    location = properties.get(f"ssl.{store}.location")
    inline = next((name for name in _inline(store) if name in properties), None)
    if location is not None and inline is not None:
        raise WrongSetting(f"{properties[inline].where}: {inline} must not stand beside ssl.{store}.location")
    password = properties.get(f"ssl.{store}.password")
    kind = properties.get(f"ssl.{store}.type")
    if kind is not None and kind.value.strip().upper() != "PEM":
        raise _not_pem(store, kind.value.strip().upper(), location.value if location else "FILE", kind.where)
    if location is not None:
        _read_store(store, location.value)
    if password is not None:
        way_out = "; ssl.key.password is the one of an encrypted key" if store == "keystore" else ""
        raise WrongSetting(f"{password.where}: ssl.{store}.password is not for PEM, which has none{way_out}")


def _inline(store: str) -> tuple[str, ...]:
    of_keystore = ("ssl.keystore.certificate.chain", "ssl.keystore.key")
    return of_keystore if store == "keystore" else ("ssl.truststore.certificates",)


def _read_store(store: str, location: str) -> str:
    name = f"ssl.{store}.location"
    try:
        read = Path(location).expanduser().read_bytes()
    except OSError as error:
        raise WrongSetting(f"{name}: must be a file that can be read: {location}: {error.strerror}") from None
    if read.startswith(_MAGIC_OF_JKS):
        raise _not_pem(store, "JKS", location, name)
    if read.startswith(b"\x30"):
        raise _not_pem(store, "PKCS12", location, name)
    if b"-----BEGIN " not in read:
        raise WrongSetting(f"{name}: must be a PEM file (text with -----BEGIN in it), but {location} is none")
    return read.decode("latin-1")


def _not_pem(store: str, kind: str, location: str, where: str) -> WrongSetting:
    if kind not in _TO_PEM:
        return WrongSetting(f"{where}: ssl.{store}.type must be PEM: Python reads no other")
    command = _TO_PEM[kind].format(file=location, wanted=_WANTED[store])
    return WrongSetting(
        f"{where}: ssl.{store}.type must be PEM: Python reads no {kind}. {command} makes one, for ssl.{store}.location"
    )


def _choice(properties: Mapping[str, Property], name: str, choices: tuple[str, ...], default: str | None) -> str:
    given = properties.get(name)
    if given is None and default is not None:
        return default
    value = "" if given is None else given.value.strip().upper()
    if value not in choices:
        where = "" if given is None else f"{given.where}: "
        raise WrongSetting(f"{where}{name}: must be one of {', '.join(choices)}{'' if given else ', got none'}")
    return value


def _pem_blocks(text: str) -> list[str]:
    """Each block with its lines as OpenSSL wants them: in a properties file it may stand in one line."""
    blocks = []
    for kind, body in _PEM.findall(text):
        if ":" not in body:  # the headers of an old encrypted key stand in lines of their own
            packed = "".join(body.split())
            body = "\n" + "\n".join(packed[at : at + 64] for at in range(0, len(packed), 64)) + "\n"
        blocks.append(f"-----BEGIN {kind}-----{body}-----END {kind}-----")
    return blocks


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error.args[-1])).replace("_", " ").lower()

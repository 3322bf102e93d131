"""Who may connect to a node's listeners, and what they may do there: Kafka's settings for it, as a pure function."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Protocol: TypeAlias = Literal["PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"]
"""A listener by its security protocol, in Kafka's own words; here each protocol has one listener at most."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What the SASL listeners accept. Credentials of SCRAM are made through the admin API, at any time."""

# Who comes in by PLAINTEXT, on loopback: the nodes themselves, and those who set up the rest.
_SUPER_USERS = "User:ANONYMOUS"

# A certificate's common name is the principal: `User:gateway`, as a user of SASL is called.
_PRINCIPAL_RULES = "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT"


@dataclass(frozen=True)
class ListenerSecurity:
    """What the listeners other than PLAINTEXT need.

    `keystore` is a PEM file with the nodes' private key (PKCS#8) and its certificate chain, `truststore` one with the
    authority that signed the certificates of clients: a client must show one on the listener SSL. `plain_users` are
    the passwords for the mechanism PLAIN by user; Kafka reads them when it starts. With `acls`, what no ACL allows is
    refused, except to those who come in by PLAINTEXT.
    """

    keystore: Path | None = None
    truststore: Path | None = None
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    acls: bool = False


def security_properties(protocols: Collection[Protocol], security: ListenerSecurity) -> dict[str, str]:
    """Kafka's settings for these listeners.

    Raises:
        ValueError: one of them needs TLS, and a file of it is missing.
    """
    properties = {}
    sasl = [protocol for protocol in protocols if protocol.startswith("SASL")]
    if sasl:
        properties["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
    for protocol in sasl:
        for mechanism in MECHANISMS:
            setting = f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"
            properties[setting] = _login_module(mechanism, security.plain_users)
    if any(protocol.endswith("SSL") for protocol in protocols):
        properties |= _tls(security)
    if security.acls:
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": _SUPER_USERS,
        }
    return properties


def _login_module(mechanism: str, plain_users: Mapping[str, str]) -> str:
    if mechanism != "PLAIN":
        return "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    users = "".join(f' user_{name}="{_escaped(password)}"' for name, password in plain_users.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required{users};"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _tls(security: ListenerSecurity) -> dict[str, str]:
    if security.keystore is None or security.truststore is None:
        raise ValueError("listeners: one with TLS needs a keystore and a truststore, got none")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(security.keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(security.truststore),
        "ssl.principal.mapping.rules": _PRINCIPAL_RULES,
        # With a password on SASL_SSL, with a certificate on SSL.
        "listener.name.ssl.ssl.client.auth": "required",
    }

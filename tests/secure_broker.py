"""One Kafka node with every kind of listener and with ACLs, and users and certificates for it."""

from __future__ import annotations

import secrets
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from loopwarden.broker import ListenerSecurity, LocalCluster, Protocol
from loopwarden.broker.properties import HOST, render
from loopwarden.client import admin_client

PLAIN_USERS = ("gateway", "runner", "worker", "operator", "stranger")
"""Who may use the mechanism PLAIN: Kafka knows those only that it was started with. SCRAM is open to any name."""

_MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class SecureBroker:
    """`User:NAME` is who comes in with a password for NAME, or on SSL with a certificate for NAME.

    Nobody may do anything that no ACL allows, but for those who come in by PLAINTEXT: they may do everything. As a
    context manager it starts and ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        """The authority of all certificates, as PEM."""
        self._authority.cert_pem.write_to_path(str(self.ca_file))
        # One that Java has to escape, and one that JAAS has to.
        self._plain = {name: f'p="{secrets.token_urlsafe(12)}"\\' for name in PLAIN_USERS}
        self._scram: dict[str, str] = {}
        security = ListenerSecurity(
            keystore=self._certificate(HOST, "localhost", name="node"),
            truststore=self.ca_file,
            plain_users=self._plain,
            acls=True,
        )
        self._cluster = LocalCluster(
            folder / "cluster", nodes=1, protocols=("SASL_PLAINTEXT", "SSL", "SASL_SSL"), security=security
        )

    @property
    def bootstrap_servers(self) -> str:
        """The address of the listener PLAINTEXT, whose clients may do everything."""
        return self._cluster.bootstrap_servers

    def bootstrap(self, protocol: Protocol) -> str:
        """The address of a listener, `HOST:PORT`."""
        return self._cluster.bootstrap(protocol)

    def client_cert(self, name: str) -> tuple[Path, Path]:
        """The files of a certificate for `name` and of its private key, as PEM."""
        both = self.client_keystore(name)
        certificate, key = both.with_suffix(".crt"), both.with_suffix(".key")
        text = both.read_text()
        start = text.index("-----BEGIN CERTIFICATE-----")
        key.write_text(text[:start])
        certificate.write_text(text[start:])
        return certificate, key

    def client_keystore(self, name: str) -> Path:
        """The one file with key and certificate for `name` that Kafka's `ssl.keystore.type=PEM` asks for."""
        file = self._folder / f"{name}.pem"
        return file if file.exists() else self._certificate(name=name)

    def add_user(self, name: str) -> str:
        """The password of a user for SCRAM, made where there is none; for those of `PLAIN_USERS` it is PLAIN's, too."""
        if name not in self._scram:
            password = self._plain.get(name) or secrets.token_urlsafe(12)
            with admin_client(self.bootstrap_servers) as client:
                for mechanism in _MECHANISMS:  # Kafka takes one credential of a user a request
                    credential = UserScramCredentialUpsertion(name, mechanism, password, iterations=4096)
                    failed = client.alter_user_scram_credentials([credential])[name]
                    assert failed is None, failed
            self._scram[name] = password
        return self._scram[name]

    def properties(self, name: str, protocol: Protocol, mechanism: str = "SCRAM-SHA-512") -> Path:
        """A client's properties file with Kafka's own names. `mechanism` counts for the two SASL protocols only."""
        settings = {"bootstrap.servers": self.bootstrap(protocol), "security.protocol": protocol}
        if protocol.startswith("SASL"):
            assert mechanism != "PLAIN" or name in PLAIN_USERS, f"{name}: must be one of {PLAIN_USERS} for PLAIN"
            password = self.add_user(name).replace("\\", "\\\\").replace('"', '\\"')
            settings |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f'{_LOGIN_MODULES[mechanism]} required username="{name}" password="{password}";',
            }
        if protocol.endswith("SSL"):
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca_file)}
        if protocol == "SSL":
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.client_keystore(name))}
        file = self._folder / f"{name}-{protocol}-{mechanism}.properties"
        file.write_text(render(settings), encoding="ascii")
        return file

    def __enter__(self) -> SecureBroker:
        self._cluster.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.kill()

    def _certificate(self, *hosts: str, name: str) -> Path:
        issued = self._authority.issue_cert(*(hosts or [name]), common_name=name)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
        # The one form of a key that Kafka reads.
        pkcs8 = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(pkcs8 + b"".join(each.bytes() for each in issued.cert_chain_pems))
        return file

"""Every listener is used by clients of kafka-python, and refuses as Kafka does."""

from __future__ import annotations

import gc
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError, TopicAuthorizationFailedError

from loopwarden.broker import ListenerSecurity, admin_client
from loopwarden.broker.security import security_properties
from loopwarden.client import Connection
from loopwarden.client.admin import wait_for_leaders
from loopwarden.client.errors import NotLetIn

if TYPE_CHECKING:
    from ..secure_broker import SecureBroker  # noqa: TID252 - tests are no package that could be named

HANG_S = 60.0

# kafka-python leaves a socket behind each time it was not let in.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

WAYS_IN = (
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
    ("SSL", None),
)


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def topic(secure_broker: SecureBroker) -> str:
    """A topic that only `gateway` may read and write."""
    name = f"t{secrets.token_hex(4)}"
    with admin_client(secure_broker.bootstrap_servers) as client:
        client.create_topics({name: {"num_partitions": 1, "replication_factor": 1, "configs": {}}})
        wait_for_leaders(client, [name], time.monotonic() + HANG_S)
        rights = [
            ACL("User:gateway", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, name))
            for operation in (ACLOperation.READ, ACLOperation.WRITE)
        ]
        assert client.create_acls(rights)["failed"] == []
    return name


def settings(broker: SecureBroker, name: str, protocol: Any, mechanism: str | None) -> dict[str, Any]:
    """What kafka-python needs to be let in as `name`."""
    chosen: dict[str, Any] = {"bootstrap_servers": broker.bootstrap(protocol), "security_protocol": protocol}
    if mechanism:
        password = broker.add_user(name)
        chosen |= {"sasl_mechanism": mechanism, "sasl_plain_username": name, "sasl_plain_password": password}
    if protocol.endswith("SSL"):
        chosen["ssl_cafile"] = str(broker.ca_file)
    if protocol == "SSL":
        certificate, key = broker.client_cert(name)
        chosen |= {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    return chosen


@contextmanager
def producing(**settings: Any) -> Iterator[Any]:
    producer = KafkaProducer(acks="all", bootstrap_timeout_ms=8000, **settings)
    yield producer
    producer.close(timeout=5)


def first_value(topic: str, **settings: Any) -> bytes | None:
    consumer = KafkaConsumer(auto_offset_reset="earliest", consumer_timeout_ms=HANG_S * 1000, **settings)
    consumer.assign([TopicPartition(topic, 0)])
    record = next(consumer, None)
    consumer.close()
    return record and record.value


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS_IN)
def test_who_has_the_rights_writes_and_reads_by_every_listener_and_mechanism(
    secure_broker: SecureBroker, topic: str, protocol: str, mechanism: str | None
) -> None:
    let_in = settings(secure_broker, "gateway", protocol, mechanism)
    with producing(**let_in) as producer:
        producer.send(topic, b"a record").get(HANG_S)
    assert first_value(topic, **let_in) == b"a record"


@pytest.mark.parametrize(
    ("protocol", "mechanism"), [("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SSL", None)]
)
def test_who_has_no_right_to_a_topic_is_refused(
    secure_broker: SecureBroker, topic: str, protocol: str, mechanism: str | None
) -> None:
    let_in = settings(secure_broker, "stranger", protocol, mechanism)
    with producing(**let_in) as producer, pytest.raises(TopicAuthorizationFailedError):
        producer.send(topic, b"a record").get(HANG_S)


@pytest.mark.parametrize(("protocol", "mechanism"), [way for way in WAYS_IN if way[1]])
def test_a_wrong_password_is_refused(
    secure_broker: SecureBroker, tmp_path: Path, protocol: Any, mechanism: str
) -> None:
    right = secure_broker.properties("gateway", protocol, mechanism).read_text()
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(re.sub('password=".*";', 'password="wrong";', right))
    # kafka-python itself only says that it tried in vain.
    with (
        pytest.raises(NotLetIn),
        admin_client(Connection.given(environment={}, properties_file=str(wrong))),
    ):
        pass


def test_without_a_certificate_nobody_comes_in_by_ssl(secure_broker: SecureBroker) -> None:
    with pytest.raises(KafkaError):
        KafkaProducer(
            bootstrap_timeout_ms=3000,
            bootstrap_servers=secure_broker.bootstrap("SSL"),
            security_protocol="SSL",
            ssl_cafile=str(secure_broker.ca_file),
        )


def test_by_plaintext_everything_is_allowed(secure_broker: SecureBroker, topic: str) -> None:
    with producing(bootstrap_servers=secure_broker.bootstrap_servers) as producer:
        producer.send(topic, b"a record").get(HANG_S)
    assert first_value(topic, bootstrap_servers=secure_broker.bootstrap_servers) == b"a record"


def test_only_its_owner_reads_the_settings_of_a_node(secure_broker: SecureBroker) -> None:
    files = list(secure_broker.ca_file.parent.glob("cluster/node-1/server.properties"))
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"]


def test_passwords_are_not_printed_with_the_settings() -> None:
    assert "secret" not in repr(ListenerSecurity(plain_users={"gateway": "secret"}))


def test_a_listener_with_tls_asks_for_its_files() -> None:
    with pytest.raises(ValueError, match="one with TLS needs a keystore and a truststore"):
        security_properties(["SASL_SSL"], ListenerSecurity(truststore=Path("ca.pem")))


def test_a_password_is_written_as_java_reads_it() -> None:
    properties = security_properties(["SASL_PLAINTEXT"], ListenerSecurity(plain_users={"gateway": 'a"b\\c'}))
    setting = properties["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
    assert setting.endswith(r'PlainLoginModule required user_gateway="a\"b\\c";')

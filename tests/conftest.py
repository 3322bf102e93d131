from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker, LocalCluster
    from loopwarden_schemas.topics import Topics

    from .secure_broker import SecureBroker


# The same examples on every run and no deadlines, so that a red build is a fault; `--hypothesis-profile=search` looks
# for new ones.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, print_blob=True, max_examples=100)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python 3.0.12 reads its schemas with importlib.resources.read_text, which Python 3.11 and 3.12 deprecate.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """One Apache Kafka for all tests, on a port of its own. Tests keep apart by their topics' prefixes."""
    from loopwarden.broker import LocalBroker

    with LocalBroker(tmp_path_factory.mktemp("broker"), port=0) as broker:
        yield broker


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """One Apache Kafka with SASL_PLAINTEXT, SSL, SASL_SSL and ACLs; PLAINTEXT is there for who may do everything."""
    from .secure_broker import SecureBroker

    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    from loopwarden.broker import LocalCluster

    with LocalCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster: LocalCluster) -> LocalCluster:
    """Three nodes, all running and in sync when a test begins, whatever the one before did to them."""
    _cluster.resume()
    _cluster.start()
    _cluster.wait_until_in_sync()
    return _cluster


@pytest.fixture
def topics(broker: LocalBroker, request: pytest.FixtureRequest) -> Topics:
    """The declared topics, created under a prefix of the test's own.

    With two partitions, or as many as the test says: `@pytest.mark.parametrize("topics", [4], indirect=True)`.
    """
    from loopwarden.broker import create_topics
    from loopwarden_schemas.topics import declared_topics

    topics = declared_topics(f"t{secrets.token_hex(4)}-", partitions=getattr(request, "param", 2))
    create_topics(broker.bootstrap_servers, topics)
    return topics

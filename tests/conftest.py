from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from loopwarden.broker import LocalCluster
    from loopwarden_schemas.topics import Topics

    from .secure_broker import SecureBroker


# The same examples on every run and no deadlines, so that a red build is a fault; `--hypothesis-profile=search` looks
# for new ones.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, print_blob=True, max_examples=100)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile("suite")


_LONG = ("chaos", "openclaw", "test_post_mortem", "test_readme", "worker", "broker", "security", "adapters", "infra")


@dataclass(frozen=True)
class SharedBroker:
    """The one Apache Kafka for all tests, whichever process started it."""

    bootstrap_servers: str


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python 3.0.12 reads its schemas with importlib.resources.read_text, which Python 3.11 and 3.12 deprecate.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OneBrokerForAll(), "one broker for all")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The files that take minutes go first: with one of them last, all processes but one would wait for it.
    here = Path(__file__).parent
    items.sort(key=lambda item: not item.path.relative_to(here).parts[0].startswith(_LONG))


class OneBrokerForAll:
    """With pytest-xdist the process that hands out the tests starts the broker, and tells the others where it is."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="loopwarden-tests-")
        self._stack = ExitStack()
        self._servers: str | None = None

    def pytest_configure_node(self, node: Any) -> None:
        if self._servers is None:
            # The suite's filters hold within tests only.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                from loopwarden.broker import LocalBroker

                broker = self._stack.enter_context(LocalBroker(Path(self._folder.name), port=0))
            self._servers = broker.bootstrap_servers
        node.workerinput["bootstrap_servers"] = self._servers

    def pytest_unconfigure(self) -> None:
        self._stack.close()
        self._folder.cleanup()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBroker]:
    """One Apache Kafka for all tests, on a port of its own. Tests keep apart by their topics' prefixes."""
    from loopwarden.broker import LocalBroker

    told = getattr(request.config, "workerinput", {}).get("bootstrap_servers")
    if told is not None:
        yield SharedBroker(told)
        return
    with LocalBroker(tmp_path_factory.mktemp("broker"), port=0) as broker:
        yield SharedBroker(broker.bootstrap_servers)


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
def topics(broker: SharedBroker, request: pytest.FixtureRequest) -> Topics:
    """The declared topics, created under a prefix of the test's own.

    With two partitions, or as many as the test says: `@pytest.mark.parametrize("topics", [4], indirect=True)`.
    """
    from loopwarden.broker import create_topics
    from loopwarden_schemas.topics import declared_topics

    topics = declared_topics(f"t{secrets.token_hex(4)}-", partitions=getattr(request, "param", 2))
    create_topics(broker.bootstrap_servers, topics)
    return topics

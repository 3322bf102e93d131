"""What a real worker shows to Prometheus, and promtool."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker

HANG_S: Final = 60
HOW_TO_GET_PROMTOOL: Final = "promtool is not on the path: it comes with Prometheus (Debian: the package `prometheus`)"


@pytest.fixture(scope="session")
def exposition(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of `/metrics` of a worker that judges."""
    from loopwarden.broker import create_topics
    from loopwarden.broker.ports import free_port
    from loopwarden_schemas.topics import declared_topics

    topics = declared_topics(f"i{secrets.token_hex(4)}-", partitions=1)
    create_topics(broker.bootstrap_servers, topics)
    port, folder = free_port(), tmp_path_factory.mktemp("worker")
    environment = {
        **os.environ,
        "LOOPWARDEN_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "LOOPWARDEN_TOPIC_PREFIX": topics.prefix,
        "LOOPWARDEN_DATA_DIR": str(folder),
        "LOOPWARDEN_METRICS_PORT": str(port),
    }
    with (folder / "log").open("wb") as log:
        worker = subprocess.Popen([sys.executable, "-m", "loopwarden.worker"], env=environment, stdout=log, stderr=log)
    try:
        text, deadline = "", time.monotonic() + HANG_S
        while "loopwarden_lag_records{" not in text:
            assert worker.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                    text = answer.read().decode()
            except OSError:
                continue
        return text
    finally:
        worker.kill()
        worker.wait(HANG_S)


@pytest.fixture(scope="session")
def exported(exposition: str) -> set[str]:
    """The names of all series that a worker can show, also those that it has no sample of yet."""
    names = set()
    for line in exposition.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return names


@pytest.fixture(scope="session")
def promtool(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Prometheus' own checker. CI fetches it; elsewhere it is used where it is."""
    found = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if found:
        return found
    if not os.environ.get("CI"):
        pytest.skip(HOW_TO_GET_PROMTOOL)
    folder = tmp_path_factory.mktemp("promtool")
    # Out of its package and not installed: that would start a Prometheus.
    subprocess.run(["apt-get", "update", "-qq"], check=True, timeout=300)
    subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=folder, check=True, timeout=300)
    [package] = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True, timeout=60)
    return str(folder / "usr/bin/promtool")


@pytest.fixture(scope="session")
def infra() -> Path:
    """The folder of what is deployed."""
    return Path(__file__).parents[2] / "infra"

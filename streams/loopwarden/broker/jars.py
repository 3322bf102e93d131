"""Kafka's jars in the cache folder: fetched once, checked against our pins at every start, offline ever after."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loopwarden.broker.errors import DownloadFailed, JarChanged, MissingExtra
from loopwarden.broker.pins import KAFKA_VERSION, Jar, pinned_jars, pins_digest, sha256_of
from loopwarden.broker.progress import Progress, silent

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"

_ATTEMPTS = 3
_PAUSE_S = 1.0

# Small files mostly, so that waiting for answers is what costs.
_CONNECTIONS = 4


def cache_folder() -> Path:
    """`$LOOPWARDEN_CACHE`, else `$XDG_CACHE_HOME/loopwarden`, else `~/.cache/loopwarden`."""
    chosen = os.environ.get("LOOPWARDEN_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification has relative paths ignored.
    return (cache_home if cache_home.is_absolute() else Path.home() / ".cache") / "loopwarden"


def jars_folder(cache: Path) -> Path:
    """Where the pinned jars lie in a cache folder."""
    return cache / f"kafka-{KAFKA_VERSION}-{pins_digest()}"


def ensure_jars(cache: Path | None = None, progress: Progress = silent, repository: str = MAVEN_CENTRAL) -> Path:
    """The folder that holds all pinned jars and nothing else, fetched from `repository` if it is not there yet.

    Several processes may do this at once: each fetches into a folder of its own, and the first to finish gives its own
    the final name.

    Raises:
        MissingExtra: they must be fetched, and jgo is not installed.
        DownloadFailed: they could not be fetched, or the cache folder not be written.
        JarChanged: a jar, from the cache or just fetched, is not the pinned one.
    """
    cache = cache_folder() if cache is None else cache
    folder = jars_folder(cache)
    if not folder.is_dir():
        _fetch_all(cache, folder, progress, repository)
    _check_all(folder)
    return folder


def _check_all(folder: Path) -> None:
    pinned = {jar.filename: jar for jar in pinned_jars()}
    found = {path.name for path in folder.iterdir()}
    way_out = f"delete the folder {folder} and start again, to fetch it anew"
    if missing := sorted(pinned.keys() - found):
        raise JarChanged(f"{missing[0]}: a pinned jar of Apache Kafka is not in the cache; {way_out}")
    if foreign := sorted(found - pinned.keys()):
        raise JarChanged(f"{foreign[0]}: is in the cache, but no jar of Apache Kafka that was pinned; {way_out}")
    for jar in pinned.values():
        _check(jar, folder / jar.filename, way_out)


def _check(jar: Jar, path: Path, way_out: str) -> None:
    if (actual := sha256_of(path)) != jar.sha256:
        raise JarChanged(
            f"{jar.filename}: is not the file that was pinned: its sha256 must be {jar.sha256}, got {actual}; {way_out}"
        )


def _fetch_all(cache: Path, folder: Path, progress: Progress, repository: str) -> None:
    try:
        import jgo  # noqa: F401
    except ImportError as error:
        raise MissingExtra from error
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix="fetching-") as temporary:
            complete = Path(temporary) / "jars"
            complete.mkdir()
            _fetch_into(complete, Path(temporary) / "maven", progress, repository)
            _publish(complete, folder)
    except OSError as error:
        raise DownloadFailed(
            f"{cache}: the folder for Apache Kafka's jars must be writable, got {error};"
            " LOOPWARDEN_CACHE names another one"
        ) from error


def _publish(complete: Path, folder: Path) -> None:
    try:
        complete.rename(folder)
    except OSError:
        # Another process was faster. Its jars are checked like ours.
        if not folder.is_dir():
            raise


def _fetch_into(complete: Path, local: Path, progress: Progress, repository: str) -> None:
    from jgo.maven import MavenContext, PythonResolver

    jars = pinned_jars()
    count = _ByteCount(progress, sum(jar.size for jar in jars))
    maven = MavenContext(
        resolver=PythonResolver(progress_callback=count.file),
        repo_cache=local,
        local_repos=[],
        remote_repos={"repository": repository},
        timeout=30,
    )

    def fetch(jar: Jar) -> None:
        artifact = maven.project(jar.group, jar.artifact).at_version(jar.version).artifact()
        cached = local / artifact.component.path_prefix / artifact.filename
        path = _with_retries(artifact.resolve, cached, jar, repository)
        _check(jar, path, "nothing was kept; try again, and if that does not help, do not use this source of jars")
        path.rename(complete / jar.filename)

    # The largest first, so that no connection is left alone with one at the end.
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        fetching = [pool.submit(fetch, jar) for jar in sorted(jars, key=lambda jar: -jar.size)]
        try:
            for one in fetching:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            count.cancelled = True
            raise


def _with_retries(resolve: Callable[[], Path], cached: Path, jar: Jar, repository: str) -> Path:
    for attempt in range(1, _ATTEMPTS + 1):
        # jgo refuses to write over the remains of an attempt that failed.
        cached.unlink(missing_ok=True)
        try:
            return resolve()
        except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's own are RuntimeErrors
            if attempt == _ATTEMPTS:
                raise DownloadFailed(
                    f"{jar.filename}: could not be fetched in {_ATTEMPTS} attempts: {error}; the first start needs"
                    f" access to {repository}, later ones do not"
                ) from error
            time.sleep(_PAUSE_S * attempt)
    raise AssertionError("unreachable")


class _ByteCount:
    """The bytes of all files together, from the one callback a file that jgo offers."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._lock = threading.Lock()
        self.cancelled = False
        self._tell(0)

    @contextmanager
    def file(self, _name: str, _size: int) -> Iterator[Callable[[int], None]]:
        yield self._tell

    def _tell(self, more: int) -> None:
        if self.cancelled:
            raise DownloadFailed("interrupted")  # the one way to end a download of jgo's early; nobody waits for it
        with self._lock:
            self._done += more
            done = min(self._done, self._total)
        self._progress(f"Fetching Apache Kafka {KAFKA_VERSION} (once)", done, self._total)

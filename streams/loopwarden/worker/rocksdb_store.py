"""States in RocksDB: a restart reads only what the changelog got since, and memory holds only the runs in use.

One database a partition, under `LOOPWARDEN_DATA_DIR`. Faust's own RocksDB store is not used: it writes every key twice,
never closes a database, and gives each a block cache of 2 GB (engine-facts, section 1).
"""

from __future__ import annotations

import fcntl
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import rocksdict

from loopwarden.worker.errors import SettingsError, StoreFailed
from loopwarden.worker.stores import Entry, Mark
from loopwarden_schemas.state import STATE_VERSION

logger = logging.getLogger(__name__)

_MARK: Final = b"m"
_STATE: Final = b"s"
"""Stands in front of every run's id, so that no id is the mark's key."""

# A partition's unflushed states. RocksDB's own 64 MB, twice for each of eight partitions, would be a gigabyte.
_WRITE_BUFFER_BYTES: Final = 8 * 1024 * 1024

# Of all partitions together, the write buffers' part of it included. The states in use are kept decoded by the worker;
# the operating system caches the files.
_CACHE_BYTES: Final = 64 * 1024 * 1024
_WRITE_BUFFERS_BYTES: Final = 32 * 1024 * 1024


# A few megabytes of states.
_MOST_UNWRITTEN: Final = 1_000


class RocksDBStores:
    """The databases of one worker, in a folder of its own."""

    def __init__(self, data_dir: Path, app_id: str, cluster_id: str) -> None:
        """Take a folder for this process alone.

        Args:
            data_dir: The worker's `LOOPWARDEN_DATA_DIR`.
            app_id: Names the changelog, whose copy this is.
            cluster_id: Of the Kafka cluster that has it: the same name elsewhere is another changelog.

        Raises:
            SettingsError: another worker uses the folder, or it cannot be written.
        """
        # States of another version are read from the changelog again, which says what is wrong with them.
        self._folder = data_dir / "rocksdb" / f"{app_id}-{cluster_id}-v{STATE_VERSION}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self._folder / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise SettingsError(
                f"LOOPWARDEN_DATA_DIR: must be a folder of this worker's own with LOOPWARDEN_STORE=rocksdb://, but"
                f" another process uses {self._folder}: give each worker another one"
            ) from None
        except OSError as error:
            raise SettingsError(f"LOOPWARDEN_DATA_DIR: must be a folder that can be written: {error}") from None
        self._cache = rocksdict.Cache(_CACHE_BYTES)
        self._write_buffers = rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(
            _WRITE_BUFFERS_BYTES, False, self._cache
        )

    def open(self, partition: int) -> RocksDBStore:
        """Open a partition's database, an empty one where there is none or it is damaged.

        Raises:
            StoreFailed: it cannot be opened.
        """
        try:
            return RocksDBStore(self._folder / f"{partition}", self._options())
        except StoreFailed as error:
            logger.warning("%s: it is read from the changelog again", error)
            self.discard(partition)
            return RocksDBStore(self._folder / f"{partition}", self._options())

    def discard(self, partition: int) -> None:
        """Remove a partition's database, which is closed."""
        shutil.rmtree(self._folder / f"{partition}", ignore_errors=True)

    def close(self) -> None:
        """Let the folder go."""
        self._lock.close()

    def _options(self) -> rocksdict.Options:
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
        options.set_write_buffer_manager(self._write_buffers)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_keep_log_file_num(2)
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_bloom_filter(10, block_based=False)
        options.set_block_based_table_factory(table)
        return options


class RocksDBStore:
    """The states of one partition, in a database.

    Writes are not synchronised with the disk: after a failure of the machine the database holds an earlier state of
    itself, with the mark of then, and the changelog has the rest.
    """

    def __init__(self, path: Path, options: rocksdict.Options) -> None:
        self._path = path
        self._unwritten: dict[bytes, Entry | None] = {}
        self._scanned_to = _STATE
        try:
            self._database = rocksdict.Rdict(str(path), options)
        except Exception as error:  # rocksdict has no other type
            raise StoreFailed(f"{path}: the database of states cannot be opened: {error}") from error

    @property
    def mark(self) -> Mark | None:
        stored: bytes | None = self._database.get(_MARK)
        if stored is None:
            return None
        changelog, judged = stored.split()
        return Mark(int(changelog), int(judged))

    def get(self, key: bytes) -> Entry | None:
        if key in self._unwritten:
            return self._unwritten[key]
        value: bytes | None = self._database.get(_STATE + key)
        return None if value is None else Entry.of(value)

    def put(self, key: bytes, entry: Entry | None) -> None:
        # Gathered, as recovery puts every record of the changelog. They are lost with the process, and read again then:
        # no mark is beyond them before they are written.
        self._unwritten[key] = entry
        if len(self._unwritten) >= _MOST_UNWRITTEN:
            self.write({}, None)

    def write(self, changes: Mapping[bytes, Entry | None], mark: Mark | None) -> None:
        changes, self._unwritten = {**self._unwritten, **changes}, {}
        if not changes and mark is None:
            return
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, entry in changes.items():
            if entry is None:
                batch.delete(_STATE + key)
            else:
                batch.put(_STATE + key, entry.value)
        if mark is not None:
            batch.put(_MARK, b"%d %d" % mark)
        try:
            self._database.write(batch)
        except Exception as error:  # rocksdict has no other type
            raise StoreFailed(f"{self._path}: the database of states cannot be written: {error}") from error

    def keys(self) -> Iterator[bytes]:
        self.write({}, None)
        for key in cast("Iterator[bytes]", self._database.keys(from_key=_STATE)):
            if not key.startswith(_STATE):
                break
            yield key[len(_STATE) :]

    def scan(self, most: int) -> list[tuple[bytes, Entry]]:
        self.write({}, None)
        found: list[tuple[bytes, Entry]] = []
        items = cast("Iterator[tuple[bytes, bytes]]", self._database.items(from_key=self._scanned_to))
        for key, value in items:
            if len(found) == most or not key.startswith(_STATE):
                break
            found.append((key[len(_STATE) :], Entry.of(value)))
        # Behind the last one there is no other key before this.
        self._scanned_to = _STATE + found[-1][0] + b"\0" if len(found) == most else _STATE
        return found

    def close(self) -> None:
        self._database.close()

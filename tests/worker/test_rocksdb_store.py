"""The databases on disk: whose they are, and what becomes of one that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwarden.worker.errors import SettingsError
from loopwarden.worker.rocksdb_store import RocksDBStores
from loopwarden.worker.stores import Entry, Mark
from loopwarden_schemas.state import STATE_VERSION

VALUE = bytes([0x93, STATE_VERSION, 7, 0])


def test_states_and_mark_are_there_after_a_restart(tmp_path: Path) -> None:
    for start in range(2):
        stores = RocksDBStores(tmp_path, "app", "cluster")
        store = stores.open(3)
        if start == 0:
            store.write({b"run": Entry(7, 0, VALUE)}, Mark(5, 7))
        assert store.get(b"run") == Entry(7, 0, VALUE)
        assert store.mark == Mark(5, 7)
        store.close()
        stores.close()


def test_the_same_topics_of_another_cluster_have_databases_of_their_own(tmp_path: Path) -> None:
    for cluster in ("one", "another"):
        stores = RocksDBStores(tmp_path, "app", cluster)
        store = stores.open(0)
        assert store.mark is None
        store.write({b"run": Entry(7, 0, VALUE)}, Mark(5, 7))
        store.close()
        stores.close()


def test_two_workers_cannot_share_a_folder(tmp_path: Path) -> None:
    stores = RocksDBStores(tmp_path, "app", "cluster")
    with pytest.raises(SettingsError, match=r"LOOPWARDEN_DATA_DIR.*another process uses .*give each worker another"):
        RocksDBStores(tmp_path, "app", "cluster")
    stores.close()
    RocksDBStores(tmp_path, "app", "cluster").close()


def test_a_damaged_database_begins_empty_so_that_it_is_read_again(tmp_path: Path) -> None:
    stores = RocksDBStores(tmp_path, "app", "cluster")
    store = stores.open(0)
    store.write({b"run": Entry(7, 0, VALUE)}, Mark(5, 7))
    store.close()
    for file in tmp_path.rglob("0/CURRENT"):
        file.write_bytes(b"nonsense")
    store = stores.open(0)
    assert store.mark is None
    assert store.get(b"run") is None
    store.close()
    stores.close()

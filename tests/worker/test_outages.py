"""Brokers that are away while a worker needs them."""

from __future__ import annotations

from typing import Any


def test_workers_begin_while_one_of_three_brokers_is_away(cluster: Any, three_brokers: Any) -> None:
    cluster.kill(cluster.node_ids[-1])
    workers = [
        # Whose databases are named for the cluster, which a broker has to be asked for.
        three_brokers.start_worker(
            LOOPWARDEN_STORE="rocksdb://", LOOPWARDEN_DATA_DIR=f"{three_brokers.folder}/{number}"
        )
        for number in range(3)
    ]
    for worker in workers:
        worker.wait_for_log("ready, judging")
    assert [worker.stop() for worker in workers] == [0, 0, 0]

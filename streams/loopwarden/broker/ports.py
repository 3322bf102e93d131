"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

from loopwarden.broker.errors import BrokerFailed
from loopwarden.broker.properties import HOST

# Below the range from which systems take the ports of outgoing connections (Linux: from 32768): a port that is free now
# should still be free when Kafka binds it, and when it is started again.
_RANGE = (20_000, 32_000)
_ATTEMPTS = 200


def free_port(preferred: int = 0) -> int:
    """`preferred` if nobody listens there, else another one. 0 prefers none."""
    if preferred and _is_free(preferred):
        return preferred
    for _ in range(_ATTEMPTS):
        if _is_free(port := random.randrange(*_RANGE)):
            return port
    raise BrokerFailed(f"{HOST}: a free port is needed, none found between {_RANGE[0]} and {_RANGE[1]}")


def free_ports(count: int) -> list[int]:
    """So many ports, all different."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return sorted(ports)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java does it: connections of a broker that just stopped do not count, only a listener does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True

"""Addresses of brokers, as people write them."""

from __future__ import annotations

from typing import Final

from loopwarden.client.errors import WrongSetting

DEFAULT_PORT: Final = 9092


def host_and_port(server: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; without a port it is 9092.

    Raises:
        WrongSetting: it is neither.
    """
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise WrongSetting(
            f"bootstrap servers: each must be HOST:PORT with a port from 1 to 65535, commas between, got {server!r}"
        )
    return host.strip("[]"), int(port)

"""Where a service listens, and what it asks of those who come."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.serving.errors import CannotListen, TokenMissing, WrongToken

DEFAULT_HOST: Final = "127.0.0.1"


class Service(NamedTuple):
    """One of our services, as its messages name it.

    Attributes:
        name: Such as `sidecar`.
        token_variable: Of the environment, that holds its token.
        harm: What anybody could do who reaches it without a token.
        port: Where it listens, unless it is told otherwise.
    """

    name: str
    token_variable: str
    harm: str
    port: int


@dataclass(frozen=True)
class Listening:
    """Where, and for whom.

    Attributes:
        service: What listens.
        host: An address or a name; not used with `unix`.
        port: 0 takes a free one.
        unix: The path of a Unix socket, instead of host and port. Its folder says who may open it.
        token: What a request must bring as `Authorization: Bearer TOKEN`; None: nothing.
    """

    service: Service
    host: str
    port: int
    unix: Path | None = None
    token: str | None = None

    @property
    def beyond_loopback(self) -> bool:
        """Whether other machines could reach it."""
        return self.unix is None and not is_loopback(self.host)

    @classmethod
    def given(
        cls,
        service: Service,
        host: str = DEFAULT_HOST,
        port: int | None = None,
        unix: str | None = None,
        token_file: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Listening:
        """Return what is given; the token is the file's, else the service's variable's of the environment.

        Raises:
            TokenMissing: it would listen beyond loopback without one.
            WrongToken: the file cannot be read, or holds no token.
            CannotListen: the socket's path is too long, or its folder is not there.
        """
        variables = os.environ if environment is None else environment
        token = _token(token_file, service.token_variable, variables)
        path = None if unix is None else _socket_path(unix)
        listening = cls(service, host, service.port if port is None else port, path, token)
        if listening.beyond_loopback and token is None:
            raise TokenMissing(
                f"--host {host}: other machines can reach it, and whoever does could {service.harm}: beyond "
                f"loopback it needs a token, in {service.token_variable} or in a file named by --token-file"
            )
        return listening


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is reached from this machine alone."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _token(file: str | None, variable: str, variables: Mapping[str, str]) -> str | None:
    if file is None:
        source, token = variable, variables.get(variable, "").strip()
        if not token:
            return None
    else:
        source = f"--token-file {file}"
        try:
            token = Path(file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise WrongToken(f"{source}: cannot be read: {why}") from None
    # What a header can carry, and no more: an odd character is most likely a wrong file.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise WrongToken(f"{source}: a token must be one word of printable ASCII characters")
    return token


def _socket_path(text: str) -> Path:
    path = Path(text)
    if len(os.fsencode(text)) > 107:
        raise CannotListen(f"--unix {text}: the path of a socket must be at most 107 bytes")
    if not path.absolute().parent.is_dir():
        raise CannotListen(f"--unix {text}: the folder {path.absolute().parent} is not there")
    return path

"""`sasl.jaas.config`: a login module with its user name and password. No part of it ever stands in a message."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loopwarden.client.errors import WrongSetting

_MODULES: Final = {"PlainLoginModule": "PLAIN", "ScramLoginModule": "SCRAM"}
_EXAMPLE: Final = 'org.apache.kafka.common.security.{package}.{module} required username="USER" password="PASSWORD";'

_TOKEN: Final = re.compile(
    r"""\s*(?: "((?:[^"\\]|\\.)*)" | '((?:[^'\\]|\\.)*)' | ([^\s"'=;]+) | ([=;]) )""", re.VERBOSE | re.DOTALL
)


class Login(NamedTuple):
    """Whom the broker is to let in. `family` is `PLAIN` or `SCRAM`."""

    family: str
    username: str
    password: str


def login(config: str, where: str) -> Login:
    """Return what the configuration says.

    Raises:
        WrongSetting: it has another form, or a module that is not supported; `where` says where it was given.
    """
    words = _words(config, where)
    module = words[0].rpartition(".")[2] if words else ""
    if module not in _MODULES:
        raise WrongSetting(
            f"{where}: sasl.jaas.config must begin with PlainLoginModule or ScramLoginModule, such as"
            f" {_example('ScramLoginModule')}"
        )
    options: dict[str, str] = {}
    rest = words[2:]
    for start in range(0, len(rest) - 2, 3):
        if rest[start + 1] == "=":
            options[rest[start]] = rest[start + 2]
    if len(words) < 2 or rest[-1:] != [";"] or len(rest) != 3 * len(options) + 1:
        raise _malformed(where, module)
    if "username" not in options or "password" not in options:
        raise _malformed(where, module)
    if options.get("tokenauth", "false") == "true":
        raise WrongSetting(f"{where}: sasl.jaas.config: delegation tokens (tokenauth) are not supported")
    return Login(_MODULES[module], options["username"], options["password"])


def _words(config: str, where: str) -> list[str]:
    words = []
    at = 0
    text = config.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _malformed(where, "ScramLoginModule")
        double, single, plain, sign = found.groups()
        quoted = double if double is not None else single
        words.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain or sign)
        at = found.end()
    return words


def _malformed(where: str, module: str) -> WrongSetting:
    return WrongSetting(f"{where}: sasl.jaas.config must have the form {_example(module)}")


def _example(module: str) -> str:
    return _EXAMPLE.format(package=_MODULES[module].lower(), module=module)

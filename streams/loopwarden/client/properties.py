"""Client settings by Kafka's own names: a properties file as Kafka's tools read it, and the environment.

`security.protocol` in the environment is `LOOPWARDEN_KAFKA_SECURITY_PROTOCOL`. What is not used is named as ignored;
what looks like a slip of the pen is refused: a misspelt `security.protocol` would send a password in the clear.
No value ever stands in a message or in the log: any of them may be a secret.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.client.errors import WrongSetting

FILE_VARIABLE: Final = "LOOPWARDEN_CLIENT_PROPERTIES"
VARIABLE_PREFIX: Final = "LOOPWARDEN_KAFKA_"

USED: Final = frozenset(
    (
        "bootstrap.servers",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    )
)

_NOT_USED: Final = frozenset(
    (
        "acks client.id client.dns.lookup compression.type enable.auto.commit enable.idempotence group.id"
        " key.deserializer key.serializer value.deserializer value.serializer linger.ms metric.reporters"
        " request.timeout.ms retries retry.backoff.ms sasl.kerberos.service.name sasl.login.class"
        " sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.oauthbearer.token.endpoint.url"
        " security.providers ssl.cipher.suites ssl.enabled.protocols ssl.engine.factory.class"
        " ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation"
        " ssl.trustmanager.algorithm"
    ).split()
)
"""Real ones of Kafka's that some of ours resemble: no slips."""

_OF_LIBRDKAFKA: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.location",
    "ssl.key.pem": "ssl.keystore.key",
    "metadata.broker.list": "bootstrap.servers",
}

_RESEMBLES: Final = 0.82
"""As `difflib` says it: one or two letters of a name wrong."""

_A_NAME: Final = re.compile(r"[a-z][a-z0-9.-]{0,80}")
_END_OF_KEY: Final = re.compile(r"(?<!\\)(?:\\\\)*\s*([=:]|\s)\s*")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

logger = logging.getLogger("loopwarden.client")
_named: set[str] = set()


class Property(NamedTuple):
    """A value, and where it was given: a variable's name, or file and line."""

    value: str
    where: str


def client_properties(file: str | None, environment: Mapping[str, str]) -> dict[str, Property]:
    """Return the properties that are used, by Kafka's names; a variable comes before the file.

    Args:
        file: The properties file; None: the one that the environment names, if it names one.
        environment: As `os.environ`.

    Raises:
        WrongSetting: the file cannot be read, or a name is a slip.
    """
    named = environment.get(FILE_VARIABLE, "").strip()
    path = named if file is None else file
    found = _from_file(path, FILE_VARIABLE if file is None else "--client-properties") if path else {}
    for variable, value in environment.items():
        # An empty variable counts as not given: that is how compose files and unit files leave one out.
        if variable.startswith(VARIABLE_PREFIX) and value.strip():
            name = variable.removeprefix(VARIABLE_PREFIX).lower().replace("_", ".")
            found[name] = Property(value, variable)
    return {name: given for name, given in found.items() if _is_used(name, given.where)}


def _from_file(path: str, source: str) -> dict[str, Property]:
    try:
        read = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise WrongSetting(
            f"{source}: must name a properties file that can be read: {path}: {error.strerror}"
        ) from None
    try:
        text = read.decode("utf-8")
    except UnicodeDecodeError:
        text = read.decode("latin-1")  # what Java takes such a file for
    if "\0" in text:
        raise WrongSetting(f"{source}: must name a properties file, text with NAME=VALUE in each line, got {path}")
    return {name: Property(value, f"{path}, line {line}") for line, name, value in parsed(text)}


def parsed(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and value of each property, as java.util.Properties reads them."""
    for number, line in _logical_lines(text):
        split = _END_OF_KEY.search(line)
        if split is None:
            name, value = line, ""
        else:
            name, value = line[: split.start(1)], line[split.end() :]
            if split.group(1).isspace() and value[:1] in ("=", ":"):
                value = value[1:].lstrip()
        yield number, _unescaped(name.rstrip()), _unescaped(value)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """A line that ends in an odd number of backslashes goes on in the next one, whose indentation does not count."""
    begun: str | None = None
    start = 0
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        part = line.lstrip(" \t\f")
        if begun is None:
            if not part or part[0] in "#!":
                continue
            begun, start = "", number
        begun += part
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
        else:
            yield start, begun
            begun = None
    if begun:
        yield start, begun


def _unescaped(text: str) -> str:
    def meant(escape: re.Match[str]) -> str:
        code, letter = escape.group(1), escape.group(2)
        return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", meant, text, flags=re.DOTALL)


def _is_used(name: str, where: str) -> bool:
    if name in USED:
        return True
    # A value that went on without a backslash is read as names: they may be part of a secret.
    known = f"{name}: " if _A_NAME.fullmatch(name) else ""
    if name in _OF_LIBRDKAFKA:
        raise WrongSetting(
            f"{where}: {known}is a name of librdkafka's; properties have those of Kafka's own clients, here"
            f" {_OF_LIBRDKAFKA[name]}"
        )
    if name == "config.providers" or name.startswith("config.providers."):
        raise WrongSetting(
            f"{where}: {known}values are read as they stand here, not from providers: give those that are secret in the"
            f" environment, such as {VARIABLE_PREFIX}SASL_JAAS_CONFIG"
        )
    meant = [] if name in _NOT_USED else difflib.get_close_matches(name, USED, 1, _RESEMBLES)
    if meant:
        raise WrongSetting(f"{where}: {known}must be the name of a property of Kafka's clients: {meant[0]}?")
    told = f"{where}: {known}is not used here, and ignored"
    if told not in _named:
        _named.add(told)
        logger.warning("%s", told)
    return False

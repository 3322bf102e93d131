"""The worker's log: text for people, or a JSON object a line where `LOOPWARDEN_LOG_FORMAT` is `json`.

The fields: `time` (RFC 3339, UTC, milliseconds), `level`, `logger`, `message`; `run`, `partition`, `offset` and `topic`
where the line is about one and knows it; `exception` with the traceback of a bug. A log call gives the known ones with
`extra=`; their words stand in the message, too, for the text format.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any, Final

FORMATS: Final = ("text", "json")

PLACE: Final = ("run", "partition", "offset", "topic")
"""The fields that a log call may give with `extra=`."""


class JsonLines(logging.Formatter):
    """A JSON object for each record, always on one line: nothing that a run says can look like a line of its own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        # Faust gives the options of its own formatter.
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        time = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in PLACE:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def faust_logging(log_format: str) -> dict[str, Any] | None:
    """Return Faust's setting `logging_config` for one of `FORMATS`; None: its own."""
    if log_format == "text":
        return None
    # Faust's handlers stay as they are; these are the names of the two formatters that they use.
    return {"merge": True, "formatters": {name: {"()": JsonLines} for name in ("default", "colored")}}

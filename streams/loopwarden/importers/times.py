"""Times as agents write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Final

import msgspec

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def milliseconds(timestamp: Any) -> int | None:
    """Return a time, ISO 8601 or already milliseconds since the epoch, as such milliseconds; None where it is none."""
    if isinstance(timestamp, (int, float)) and not isinstance(timestamp, bool):
        return int(timestamp) if 0 <= timestamp <= 2**53 else None
    if not isinstance(timestamp, str):
        return None
    try:
        moment = msgspec.convert(timestamp, datetime)
    except msgspec.ValidationError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))

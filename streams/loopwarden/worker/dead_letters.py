"""`agent-events-dead`: what could not be read or judged, with its original bytes and headers that say why.

Their shape is `loopwarden_schemas.dead_letters`, the rejections themselves are `loopwarden_schemas.codec`'s.
"""

from __future__ import annotations

from typing import Any, Final

from loopwarden.worker.records import Header
from loopwarden_schemas import dead_letters as names
from loopwarden_schemas.dead_letters import Place, place_headers
from loopwarden_schemas.structs import Rejected
from loopwarden_schemas.topics import MAX_RECORD_BYTES

CUT_TO_BYTES: Final = 64 * 1024
"""Of a record that would be too large for the broker once more, so much is carried; headers say where it lies."""

_MAX_DETAIL_BYTES: Final = 1024

# The topic takes 128 KiB beyond the largest record. What is not value: our headers, and a key and a content type that
# anybody may have written as long as they like.
_MAX_KEY_BYTES: Final = 4096
_MAX_CONTENT_TYPE_BYTES: Final = 256


def dead_letter(record: Any, rejected: Rejected, *, first: bool) -> tuple[bytes | None, bytes | None, list[Header]]:
    """Return key, value and headers of the dead letter for a record, or for one event of its list.

    Args:
        record: aiokafka's ConsumerRecord.
        rejected: Which event of it, and why.
        first: Whether it is the first of this record. Further ones of a large record carry only its beginning, for a
            list of 100 bad events would else come back as 100 copies of itself.
    """
    key, value = record.key, record.value
    headers = [
        (names.REASON, rejected.reason.encode()),
        (names.DETAIL, _cut(rejected.detail.encode("utf-8", "backslashreplace"), _MAX_DETAIL_BYTES)),
        *place_headers(Place(record.topic, record.partition, record.offset, rejected.index)),
        (names.APPEND_TIME, b"%d" % record.timestamp),
    ]
    for name, text in record.headers:
        if name == names.CONTENT_TYPE:
            headers.append((name, _cut(text or b"", _MAX_CONTENT_TYPE_BYTES)))
            break
    if key is not None and len(key) > _MAX_KEY_BYTES:
        headers.append((names.ORIGINAL_KEY_SIZE, b"%d" % len(key)))
        key = key[:_MAX_KEY_BYTES]
    limit = MAX_RECORD_BYTES if first else CUT_TO_BYTES
    if value is not None and len(value) > limit:
        headers.append((names.ORIGINAL_SIZE, b"%d" % len(value)))
        value = value[:CUT_TO_BYTES]
    if key is None and value is None:
        # aiokafka takes no record without both.
        value = b""
    return key, value, headers


def _cut(text: bytes, limit: int) -> bytes:
    if len(text) <= limit:
        return text
    return text[:limit].decode("utf-8", "ignore").encode()

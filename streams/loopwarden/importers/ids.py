"""Ids for what other people's files leave without one: the same file gives the same ids, whenever it is read."""

from __future__ import annotations

from typing import Final

from loopwarden_schemas.digests import digest, short_id

_MAX_PREFIX_BYTES: Final = 40
"""Leaves 24 of the 64 bytes up to which an id is kept as it is for the place in the run. A UUID has 36."""


def run_prefix(run_id: str) -> str:
    """Return what the ids of a run's events begin with: its id, or where that is long the beginning of its digest."""
    # 64 bits tell the runs of any file apart.
    return run_id if len(run_id.encode()) <= _MAX_PREFIX_BYTES else digest(run_id)[:16]


def event_id(prefix: str, *place: str) -> str:
    """Return the id of an event by its place in its run, readable where 64 bytes allow it."""
    return short_id("/".join((prefix, *place)))


def call_id(given: str) -> str:
    """Return a call's id as the wire takes it: some agents join several ids into one of hundreds of bytes."""
    return short_id(given)

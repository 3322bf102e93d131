"""Putting a policy into force: into the archive, then into every partition of `agent-events`. (design.md, "Policy".)

A failure on the way leaves some partitions with the former policy. Applying the same policy again then goes on with the
number it has, and writes what is missing. A policy that is in force everywhere and is applied for another reason, or by
somebody else, is a decision of its own: it is archived again, so that whoever asks later finds every reason given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kafka import KafkaProducer
from kafka.errors import KafkaError

from loopwarden.client.acls import Grant
from loopwarden.client.connect import connected
from loopwarden.client.errors import PolicyNotApplied
from loopwarden.client.follower import following
from loopwarden.client.policy_archive import ArchivedPolicy, append_policy, archived, read_archive
from loopwarden.client.policy_in_force import Progress, policies_in_force, silent
from loopwarden.client.producer import HEADERS, PRODUCER_SETTINGS
from loopwarden.client.rights import require
from loopwarden.client.settings import Connection
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_own_part import own_part

_ACKNOWLEDGED_S: Final = 20.0


class Applied(NamedTuple):
    """What applying a policy came to.

    Attributes:
        policy: As it is archived.
        newly_archived: Whether it was archived now; if not, what the archive says of who and why stays.
        confirms: The number of the same policy that was in force everywhere before; None: another one was, or none.
        written: The partitions into which `policy.applied` was written now.
        already: The partitions where it was in force.
    """

    policy: ArchivedPolicy
    newly_archived: bool
    written: list[int]
    already: list[int]
    confirms: int | None = None


def apply_policy(
    connection: Connection,
    document: PolicyDocument,
    *,
    by: str,
    why: str,
    ts: int,
    confirm: bool = True,
    progress: Progress = silent,
) -> Applied:
    """Archive a policy, unless it is the archive's newest, and write `policy.applied` wherever it is not in force.

    Args:
        connection: The cluster.
        document: What of it is none of our business is not archived; see `own_part`.
        by: Who applies it.
        why: For whoever asks later.
        ts: Now, in milliseconds since the epoch.
        confirm: Archive a policy that is in force everywhere again, where `by` or `why` is another.
        progress: Told while the log is read.

    Raises:
        BrokerUnavailable: no broker there.
        TopicMissing: a topic is not there.
        NotAuthorized: this client must not write to one of them; then nothing was written.
        PolicyNotApplied: some partitions did not take it.
    """
    document = own_part(document)
    topics = connection.topics()
    require(connection, [Grant("topic", each.name, ("Write",)) for each in (topics.policies, topics.events)])
    archive = read_archive(connection)
    confirms = None
    if archive and archive[-1].document.digest == document.digest:
        policy = archive[-1]
        states = policies_in_force(connection, archive, progress)
        missing = [state.partition for state in states if state.number != policy.number]
        if missing or not confirm or (policy.by, policy.why) == (by, why):
            write_applied(connection, policy, missing, ts)
            return Applied(policy, False, missing, [each.partition for each in states if each.number == policy.number])
        confirms = policy.number
    with following(connection, connection.topics().events.name) as follower:
        log_ends = follower.ends()
    number = append_policy(connection, document, by=by, why=why, ts=ts, log_ends=log_ends)
    # Read again: the number counts only if it is there.
    policy = archived(read_archive(connection), number)
    write_applied(connection, policy, sorted(log_ends), ts)
    return Applied(policy, True, sorted(log_ends), [], confirms)


def write_applied(connection: Connection, policy: ArchivedPolicy, partitions: Iterable[int], ts: int) -> None:
    """Write the `policy.applied` of an archived policy into these partitions.

    Raises:
        BrokerUnavailable: no broker there.
        PolicyNotApplied: some of them did not take it.
    """
    sent = {}
    failed: dict[int, BaseException] = {}
    wanted = list(partitions)
    if not wanted:
        return
    with connected(KafkaProducer, connection, **PRODUCER_SETTINGS) as producer:
        for partition in wanted:
            record = encode_event(_applied_event(policy, partition, ts))
            try:
                sent[partition] = producer.send(
                    connection.topics().events.name, record, partition=partition, headers=HEADERS
                )
            except KafkaError as error:
                failed[partition] = error
        failed |= {partition: failure for partition, future in sent.items() if (failure := _failure(future))}
    if failed:
        first, why = next(iter(failed.items()))
        raise PolicyNotApplied(
            f"policy {policy.number} is archived, but {len(failed)} of {len(wanted)} partitions did not take it:"
            f" {', '.join(map(str, sorted(failed)))} (partition {first}: {why}). Runs that begin there keep the"
            " former policy. Apply the same file again: it goes on with what is missing"
        )


def _failure(sent: Any) -> KafkaError | None:
    try:
        sent.get(timeout=_ACKNOWLEDGED_S)
    except KafkaError as error:
        return error
    return None


def _applied_event(policy: ArchivedPolicy, partition: int, ts: int) -> dict[str, Any]:
    return {
        "schema": 1,
        "type": "policy.applied",
        "event_id": f"policy-{policy.number}/{partition}",
        "ts": ts,
        "number": policy.number,
        "digest": policy.document.digest,
    }

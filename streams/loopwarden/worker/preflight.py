"""Refuses a cluster on which the guarantees would be false, before anything is read.

(design.md, "How the worker folds".) What is declared and what breaks a guarantee is in the contract
(`topic_differences`), what a worker may do in `loopwarden.client.acls`; the cluster is asked as `loopwarden topics`
asks it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from loopwarden.client import BrokerUnavailable, ClusterError, Connection, NotAuthorized, NotLetIn, WrongSetting
from loopwarden.client.acls import grants
from loopwarden.client.topics import find_topics
from loopwarden.worker.errors import NotAdmitted, StateRefused, TopicsRefused
from loopwarden_schemas.topic_differences import Found, Wanted, differences
from loopwarden_schemas.topics import Topics

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0

_CONNECT_S: Final = 3.0
"""A worker that is asked to stop waits for the attempt under way."""


async def wait_for_topics(connection: Connection) -> int:
    """Wait until a broker answers, check rights and topics, and return the number of partitions of `agent-events`.

    A broker that is not there is tried again and again, with pauses that grow; the log says so.

    Raises:
        NotAdmitted: the cluster does not let this worker in, or not do what it has to.
        TopicsRefused: a topic is missing, or is one that would make the guarantees false.
    """
    pause = _FIRST_PAUSE_S
    while True:
        try:
            return await asyncio.to_thread(_check, connection)
        except (NotLetIn, NotAuthorized, WrongSetting) as error:
            raise NotAdmitted(str(error)) from None
        except BrokerUnavailable as error:
            servers = connection.bootstrap_servers
            logger.warning("no Kafka broker answers at %s (%s): trying again in %.1f s", servers, error, pause)
        except ClusterError as error:
            raise TopicsRefused(str(error)) from None
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _check(connection: Connection) -> int:
    topics = connection.topics()
    found = find_topics(connection, topics.all(), _CONNECT_S, rights=grants("worker", topics))
    mistakes = find_mistakes(connection, found)
    if mistakes:
        raise TopicsRefused("\n".join(mistakes))
    return found[topics.events.name].partitions


def find_mistakes(connection: Connection, found: Mapping[str, Found]) -> list[str]:
    """Return what is wrong with the topics, a line each: the setting, what it must be, and what mends it."""
    option = f" --prefix {connection.topic_prefix}" if connection.topic_prefix else ""
    command = f"loopwarden topics apply --broker kafka://{connection.bootstrap_servers}{option}"
    return [
        f"{each.in_words()}: {each.way_out}" if each.change == "none" else f"{each.in_words()}: `{command}` mends it"
        for each in differences(Wanted(connection.topic_prefix), found)
        if each.breaks_guarantees
    ]


def check_log(topics: Topics, partition: int, *, judged: int, end: int) -> None:
    """Refuse a log of events that is not the one that was judged.

    Args:
        topics: For the message.
        partition: Of `agent-events`.
        judged: Up to this offset it was judged, as the committed offset and the states say.
        end: Here it ends.

    Raises:
        StateRefused: it ends before.
    """
    if judged > end:
        raise StateRefused(
            f"{topics.events.name} partition {partition}: must reach to offset {judged}, up to which it was judged, but"
            f" ends at {end}: it is not the log that the states were made of, it was deleted and created again for"
            f" instance. Begin under another LOOPWARDEN_TOPIC_PREFIX, or delete {topics.changelog.name} and the"
            f" consumer group {topics.app_id}, too"
        )

"""What is judged again of one partition of `agent-events`: from where, under which policy, and which runs of it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from loopwarden.replay.beginnings import Beginnings
from loopwarden.replay.fold_events import Folder
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument


@dataclass(frozen=True)
class LogPart:
    """A partition, or a file (which is read as if it were one whole partition).

    Attributes:
        partition: Its number.
        partitions: How many the topic has; 0: a file, in which nothing is misrouted.
        whole_log: Whether it is read from offset 0.
        since: The offset from which on verdicts are compared; what is read before only builds the states.
        end: The offset below which they are: everything there was judged.
        recorded_from: Verdicts of events below this offset may be gone from `loop-verdicts`.
        policy: In force where the reading begins.
        number: Of that policy; -1: none was applied.
        known_from: None: that is certain. Else the policies up to this number may have been applied in the part of the
            log that is gone: what is in force is known once this one, or a newer one, is seen to be applied.
        archive: The documents by their numbers; None: a file, in which they are inline.
        fixed: `policy` holds for every run, whatever is applied in the log.
        runs: Only these runs; None: all.
        shard: Which of `shards` equal parts of the runs is judged: with several processes on one partition.
        shards: How many there are.
    """

    partition: int = 0
    partitions: int = 0
    whole_log: bool = True
    since: int = 0
    end: int = 1 << 62
    recorded_from: int = 0
    policy: PolicyDocument = DEFAULT_DOCUMENT
    number: int = -1
    known_from: int | None = None
    archive: Mapping[int, PolicyDocument] | None = field(default=None, repr=False)
    fixed: bool = False
    runs: frozenset[bytes] | None = None
    shard: int = 0
    shards: int = 1

    def wants(self, key: bytes) -> bool:
        """Whether the run with this key is one of those to be judged."""
        if self.runs is not None and key not in self.runs:
            return False
        return self.shards == 1 or zlib.crc32(key) % self.shards == self.shard

    def folder(self) -> Folder:
        """Return what folds it."""
        return Folder(self.policy, archive=self.archive, number=self.number)

    def beginnings(self) -> Beginnings:
        """Return what looks at how its runs begin."""
        beginnings = Beginnings(self.whole_log)
        beginnings.policy_known = self.fixed or self.known_from is None
        return beginnings

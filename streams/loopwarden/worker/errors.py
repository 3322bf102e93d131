"""What stops a worker. Each message says what, where, the rule, what was found and the way out; none needs a traceback.

WorkerError
  MissingExtra        the packages of the worker are not installed
  SettingsError       an environment variable has a value that cannot be
  NotAdmitted         the cluster does not let this worker in, or not do what it has to
  TopicsRefused       the topics would make the guarantees false
  StateRefused        a state, or a policy in force, is one that this worker cannot go on from
  StoreFailed         the folder of states cannot be read or written
  LogUnreadable       events that were judged cannot be read once more
  BatchLost           records did not reach the agent; only a restart from the committed offset finds them
  GroupFailed         the broker will not have this worker in the group
  ProduceFailed       the broker refused a record, or did not acknowledge it in time
"""

from __future__ import annotations


class WorkerError(Exception):
    """Any of the causes above."""


class MissingExtra(WorkerError, ImportError):
    """The packages of the worker are not installed."""


class SettingsError(WorkerError, ValueError):
    """An environment variable has a value that cannot be."""


class NotAdmitted(WorkerError):
    """The cluster does not let this worker in, or not do what it has to."""


class TopicsRefused(WorkerError):
    """The topics would make the guarantees false: one line for each thing that is wrong."""


class StateRefused(WorkerError):
    """A state, or a policy in force, is one that this worker cannot go on from."""


class StoreFailed(WorkerError):
    """The folder of states cannot be read or written."""


class LogUnreadable(WorkerError):
    """Events that were judged cannot be read once more."""


class BatchLost(WorkerError):
    """Records did not reach the agent."""


class GroupFailed(WorkerError):
    """The broker will not have this worker in the group."""


class ProduceFailed(WorkerError):
    """The broker refused a record, or did not acknowledge it in time."""

"""The Faust worker: folds `agent-events` with the judge and publishes verdicts. (design.md, "How the worker folds".)

`loopwarden worker` calls `run_worker`; `faust -A loopwarden.worker.app worker` starts the same app.
"""

from importlib.util import find_spec

from loopwarden.worker.errors import MissingExtra, SettingsError, WorkerError

if find_spec("faust") is None or find_spec("aiokafka") is None:
    raise MissingExtra("the worker needs packages that are not installed: pip install 'loopwarden[worker]'")

from loopwarden.worker.run import run_worker
from loopwarden.worker.settings import Settings

__all__ = ["MissingExtra", "Settings", "SettingsError", "WorkerError", "run_worker"]

"""The Faust worker: folds `agent-events` with the judge and publishes verdicts. (design.md, "How the worker folds".)

`loopwarden worker` calls `run_worker`; `faust -A loopwarden.worker.app worker` starts the same app.
"""

import sys
from importlib.util import find_spec

from loopwarden.worker.errors import MissingExtra, SettingsError, WorkerError

# Faust's module has no spec once it is imported, which find_spec takes for an error.
if any(name not in sys.modules and find_spec(name) is None for name in ("faust", "aiokafka")):
    raise MissingExtra("the worker needs packages that are not installed: pip install 'loopwarden[worker]'")

from loopwarden.worker.run import run_worker
from loopwarden.worker.settings import Settings

__all__ = ["MissingExtra", "Settings", "SettingsError", "WorkerError", "run_worker"]

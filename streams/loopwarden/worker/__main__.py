"""`python -m loopwarden.worker`: a worker with the settings of the environment."""

import sys

from loopwarden.worker import Settings, SettingsError, run_worker

if __name__ == "__main__":
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"{error}")
    sys.exit(run_worker(settings))

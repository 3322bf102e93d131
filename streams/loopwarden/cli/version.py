"""`loopwarden version`"""

from __future__ import annotations

import platform
from importlib import metadata


def version() -> None:
    """Print the versions of Loopwarden, of its rules and of Python, and whether the judge is compiled."""
    from loopwarden.judge import fold
    from loopwarden_schemas.verdicts import RULES_VERSION

    judge = "pure Python" if str(fold.__file__).endswith(".py") else "compiled"
    versions = f"rules {RULES_VERSION}, judge {judge}, Python {platform.python_version()}"
    print(f"loopwarden {metadata.version('loopwarden')} ({versions})")

"""`loopwarden version`"""

from __future__ import annotations

import platform
from importlib import metadata


def version() -> None:
    """Print the versions of Loopwarden, of its rules and of Python."""
    from loopwarden_schemas.verdicts import RULES_VERSION

    print(f"loopwarden {metadata.version('loopwarden')} (rules {RULES_VERSION}, Python {platform.python_version()})")

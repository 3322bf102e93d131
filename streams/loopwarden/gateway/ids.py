"""Random ids, made without ever letting go of the interpreter.

`uuid.uuid4` asks the kernel for chance and lets other threads run meanwhile: a call of the agent's would then wait for
the sending thread to finish its turn, some hundred microseconds for each id.
"""

from __future__ import annotations

import os
import random
from typing import Final

_random: Final = random.Random(os.urandom(32))

if hasattr(os, "register_at_fork"):
    # A forked child must not go on with its parent's ids.
    os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


def new_id() -> str:
    """Return 32 random hexadecimal digits: as rare as a UUID, in a tenth of its time."""
    return f"{_random.getrandbits(128):032x}"

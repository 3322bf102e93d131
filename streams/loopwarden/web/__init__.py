"""The live page over HTTP, for people who watch a fleet: `loopwarden serve`.

Only what needs no extra is imported here; `serve` imports FastAPI and uvicorn.
"""

from typing import Final

from loopwarden.serving import Service

WEB: Final = Service("page", "LOOPWARDEN_WEB_TOKEN", "see what every agent does", 9098)

__all__ = ["WEB"]

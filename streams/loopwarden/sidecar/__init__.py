"""Gateway and runner over HTTP, for agents in any language: `loopwarden sidecar`.

Only what needs no extra is imported here; `serve` imports FastAPI and uvicorn.
"""

from typing import Final

from loopwarden.serving import Service

SIDECAR: Final = Service("sidecar", "LOOPWARDEN_SIDECAR_TOKEN", "speak for every run", 9099)

__all__ = ["SIDECAR"]

"""What an agent does, into the log: `Gateway` for threads, `AsyncGateway` for asyncio. (design.md, "Events".)

gateway = Gateway(bootstrap_servers="localhost:9092")
with gateway.run(agent_id="docs") as run, run.call("read", {"path": "/etc/hosts"}) as call:
    call.result(read("/etc/hosts"))
"""

from loopwarden.gateway.asynchronous import AsyncCall, AsyncGateway, AsyncRun
from loopwarden.gateway.errors import Dropped, GatewayError, NotSent, Refused, Spooled
from loopwarden.gateway.gateway import Gateway
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.run import Call, Run
from loopwarden.gateway.stats import GatewayStats

__all__ = [
    "AsyncCall",
    "AsyncGateway",
    "AsyncRun",
    "Call",
    "Dropped",
    "Gateway",
    "GatewayError",
    "GatewayStats",
    "NotSent",
    "Receipt",
    "Refused",
    "Run",
    "Spooled",
]

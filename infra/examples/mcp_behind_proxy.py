"""An MCP server behind the proxy, and a client that loops: it is warned, blocked, then refused whatever it asks for.

    loopwarden up     # broker and worker on this machine; the rest in another terminal
    loopwarden policy apply infra/examples/looping-policy.json5 --why "an example"
    pip install 'loopwarden[mcp]'
    python infra/examples/mcp_behind_proxy.py

The server is this file, too (`mcp_behind_proxy.py serve`); it knows nothing of Loopwarden. Any other command of a
server can stand after the `--`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport

# `--certain`: far longer than it takes, so that the example ends the same each time.
PROXY = ["-m", "loopwarden.adapters.mcp_proxy", "--agent-id", "looping", "--certain", "10", "--"]

server: FastMCP = FastMCP("files", instructions="Reads files.")


@server.tool
def read(path: str) -> str:
    """Read a file. The client hopes that it says something else next time."""
    return "127.0.0.1 localhost"


async def loop() -> None:
    command = [*PROXY, sys.executable, __file__, "serve"]
    async with Client(StdioTransport(sys.executable, command, env=dict(os.environ))) as client:
        for number in range(1, 11):
            result = await client.call_tool("read", {"path": "/etc/hosts"}, raise_on_error=False)
            texts = " | ".join(block.text for block in result.content if block.type == "text")
            print(f"{number:2} {'refused' if result.is_error else 'made':8} {texts}")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run(show_banner=False, log_level="WARNING")
    else:
        asyncio.run(loop())

"""An MCP server on stdio, written with FastMCP: the real one behind the proxy."""

from fastmcp import FastMCP

server: FastMCP = FastMCP("files")


@server.tool
def read(path: str) -> str:
    """Read a file."""
    if path == "/missing":
        raise FileNotFoundError(path)
    return "127.0.0.1 localhost"


if __name__ == "__main__":
    server.run(show_banner=False)

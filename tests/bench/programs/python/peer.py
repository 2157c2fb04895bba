"""The same echo as a tool of FastMCP, served over stdio."""

from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool
def echo(payload: str) -> str:
    """Gives its text back."""
    return payload


if __name__ == "__main__":
    # Neither a banner nor a line for each request: favours it.
    server.run(transport="stdio", show_banner=False, log_level="ERROR")

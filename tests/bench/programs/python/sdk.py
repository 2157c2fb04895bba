"""The same echo with the SDK."""

from plugd_sdk import Plugin

plugin = Plugin("echo", "1.0.0")


@plugin.operation(read_only=True)
def echo(payload: str) -> str:
    """Gives its text back.

    Args:
        payload: What to give back.
    """
    return payload


if __name__ == "__main__":
    plugin.serve()

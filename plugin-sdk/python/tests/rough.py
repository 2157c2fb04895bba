"""A plugin that does what handlers should not; the tests of the process use it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plugd_sdk import Context, Plugin

plugin = Plugin("rough", "1.0.0", description="Does what handlers should not.")


@plugin.operation
def echo(text: str) -> str:
    """Says it back. Word by word."""
    return text


@plugin.operation(name="print")
def print_() -> str:
    """Prints wherever it can. Also half a message."""
    print('stray {"jsonrpc":', end="")
    sys.__stdout__.write("more\n")
    os.write(1, b"raw\n")
    subprocess.run(["echo", "from the child"], check=True)
    return "printed"


@plugin.operation
def half() -> str:
    """Prints half a line. Fails then."""
    os.write(1, b"half a line")
    return {}["nothing"]  # type: ignore[return-value]


@plugin.operation
def tools() -> Any:
    """Runs programs that read their standard input. They find it empty."""
    commands = (["cat"], ["head", "-c", "20"])
    return [subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode() for command in commands]


@plugin.operation
def descriptors() -> Any:
    """Counts the descriptors that a child program gets. There are three, and what it opens to count."""
    command = [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')) - 1)"]
    return int(subprocess.run(command, stdout=subprocess.PIPE, close_fds=False, check=True).stdout)


@plugin.operation
def stuck(ctx: Context) -> None:
    """Computes and never looks. Not even at the clock."""
    ctx.progress(1)
    while True:
        pass


@plugin.operation
def chatter(ctx: Context) -> None:
    """Logs in the background, without end. Keeps a thread that nobody ends."""

    def talk() -> None:
        while True:
            ctx.info("and another thing")

    threading.Thread(target=talk).start()


@plugin.operation
def linger() -> None:
    """Leaves a thread that is no daemon. It never ends."""
    threading.Thread(target=threading.Event().wait).start()


@plugin.operation
def large(size: int) -> str:
    """Gives so many bytes. More than a message holds, if wanted."""
    return "x" * size


@plugin.operation
def large_partial(size: int, ctx: Context) -> None:
    """Sends a piece of so many bytes. More than a message holds, if wanted."""
    ctx.partial("x" * size)


@plugin.operation
def log(ctx: Context) -> None:
    """Logs with what Python has for it. From a thread of its own, too."""
    logger = logging.getLogger("rough.log")
    logger.debug("unseen")
    logger.info("%d plain", 1)
    logger.warning("a warning")
    try:
        raise RuntimeError("the reason")
    except RuntimeError:
        logger.exception("it failed")
    thread = threading.Thread(target=logger.critical, args=("from a thread",))
    thread.start()
    thread.join()


@plugin.operation
def looks(ctx: Context) -> str:
    """Looks until it is cancelled. Ends then."""
    ctx.progress(1)
    while not ctx.cancelled:
        pass
    return "stopped"


if __name__ == "__main__":
    print("printed while it was loaded", file=sys.stderr)
    plugin.serve()

"""The plugin as a process: its arguments, its terminal, its standard streams, its end."""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, NoReturn, Tuple

from .answer import complain
from .errors import DeclarationError
from .lanes import LAST_WORDS, lanes_for
from .logs import install
from .session import Session

if TYPE_CHECKING:
    from .plugin import Plugin

#: The exit status that means: starting me again would not help.
EXIT_PERMANENT = 125
#: The exit status of a plugin that somebody started by hand on a terminal.
EXIT_BY_HAND = 2
#: The exit status of a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130
#: Descriptors below this one are the standard three.
FIRST_FREE = 3


def run(plugin: "Plugin") -> NoReturn:
    """Runs a plugin in this process."""
    try:
        manifest = plugin.manifest()
    except DeclarationError as error:
        complain(str(error))
        sys.exit(EXIT_PERMANENT)
    _answer_arguments(manifest)
    source, sink = take_streams()
    session = Session(plugin, source, sink, lost=_leave_now)
    session.lanes = lanes_for(session, plugin.concurrency, is_async=plugin.is_async)
    install(session)
    threading.Thread(target=_watch, args=(source,), name="host-watch", daemon=True).start()
    try:
        session.lanes.run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    # Threads that an author has left running would keep the process.
    threading.Thread(target=_leave_soon, name="leaving", daemon=True).start()
    sys.exit(0)


def take_streams() -> Tuple[int, int]:
    """Moves both protocol streams to descriptors of their own, closed to child programs.

    Afterwards what anything prints goes to stderr, and a child program that reads its stdin finds it
    empty: neither can touch the protocol.
    """
    source = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    sink = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    os.set_blocking(source, True)
    os.set_blocking(sink, True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(sys.stdout, "reconfigure"):
        # So that a print is seen when it happens, and not lost with the process.
        sys.stdout.reconfigure(line_buffering=True)
    return source, sink


def _watch(source: int) -> None:
    """Ends the process soon after the host is gone, whatever it is doing then.

    A handler that computes, or waits for something else, does not read. This costs calls nothing: the
    thread wakes once.
    """
    poll = select.poll()
    # No events but the end, which is told without asking.
    poll.register(source, 0)
    while not poll.poll():
        pass
    _leave_soon()


def _leave_soon() -> None:
    time.sleep(LAST_WORDS)
    _leave_now()


def _leave_now() -> None:
    os._exit(0)


def _answer_arguments(manifest: Dict[str, Any]) -> None:
    """Answers somebody who runs it by hand, and ends."""
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked == "--describe":
        print(json.dumps(manifest, ensure_ascii=False, indent=2))
    elif asked in ("--version", "-V"):
        print(manifest["name"], manifest["version"])
    elif asked in ("--help", "-h"):
        print(usage(manifest), end="")
    elif os.isatty(0):
        complain(usage(manifest))
        sys.exit(EXIT_BY_HAND)
    else:
        return
    sys.exit(0)


def usage(manifest: Dict[str, Any]) -> str:
    """What it is and how to use it, for somebody who started it by hand."""
    program = sys.argv[0] or manifest["name"]
    by_itself = os.access(program, os.X_OK)
    command = [program] if by_itself else ["python3", program]
    text = f"{manifest['name']} {manifest['version']}, a plugd plugin\n"
    if "description" in manifest:
        text += f"{manifest['description']}\n"
    text += "\nOperations:\n"
    operations = manifest["operations"]
    width = max((len(operation["name"]) for operation in operations), default=0)
    for operation in operations:
        sentence = operation.get("description", "(no description)").split(". ")[0].split("\n")[0].rstrip(".")
        text += f"  {operation['name']:{width}}  {sentence}.\n"
    text += (
        "\nIt speaks JSON-RPC over stdin and stdout, one message a line, and is started by plugd.\n"
        f"Add it to plugd.toml:\n\n  [plugins.{manifest['name']}]\n  command = {json.dumps(command)}\n\n"
        "Or try it:\n\n"
    )
    if operations:
        sample = " ".join(f"{name}={value}" for name, value in _sample(operations[0]).items())
        here = program if "/" in program else f"./{program}"
        if by_itself:
            text += f"  plugd call {here} {operations[0]['name']} {sample}".rstrip() + "\n"
    return text + f"  {' '.join(command)} --describe\n"


def _sample(operation: Dict[str, Any]) -> Dict[str, str]:
    """Arguments to try an operation with: what is required, by its first example."""
    schema = operation["input_schema"]
    sample = {}
    for name in schema.get("required", ()):
        said = schema["properties"].get(name, {})
        candidates = [*said.get("examples", [])[:1], *said.get("enum", [])[:1], said.get("minimum")]
        first = next((value for value in candidates if value is not None), "…")
        sample[name] = first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)
    return sample

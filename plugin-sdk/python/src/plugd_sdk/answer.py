"""What requests of the host are answered: results, failures, and what is told of a fault."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any, Dict, Iterator, List, Optional

from .asked import forgotten
from .call import Call
from .encode import NotJson, dumps, to_bytes
from .errors import HANDLER_FAILED, INVALID_PARAMS, Error, Misuse, coded, fault, reason
from .forms import Unfit
from .link import Link
from .operation import unfit_argument
from .reply import Reply

#: A host keeps about as much of one line of the log, in bytes; a longer stack takes several.
LOG_ENTRY_MAX = 8000
#: As much of the beginning and of the end of a stack is told, in characters: between them it repeats itself.
STACK_END_MAX = 16 * 1024


def result(outcome: Any) -> str:
    """The ``result`` member for what a handler gave.

    :raises NotJson: where that cannot be written as JSON.
    """
    if outcome.__class__ is not Reply:
        return f'"result":{{"data":{dumps(outcome)}}}'
    members: Dict[str, Any] = {"data": outcome.data}
    if outcome.summary is not None:
        members["summary"] = outcome.summary
    if outcome.next_actions:
        members["next_actions"] = list(outcome.next_actions)
    return f'"result":{dumps(members)}'


def refusal(error: Error) -> str:
    """The ``error`` member for a failure."""
    try:
        return f'"error":{dumps(error.to_wire())}'
    except NotJson:
        return f'"error":{dumps({"code": error.code, "message": str(error)})}'


def failure(call: Call, error: BaseException) -> Error:
    """What a caller is told where a handler has raised; of a fault, the stack goes to the log."""
    operation = call.operation
    if isinstance(error, Unfit):
        return unfit_argument(error)
    if isinstance(error, TypeError) and not isinstance(error, Misuse):
        # Of calling it, perhaps: the host checks arguments, but a test's may not fit.
        error = operation.unfit(call.arguments) or error
    if isinstance(error, Error):
        return error
    tell_stack(call.link, f"{operation.name} failed", error, call)
    if isinstance(error, NotJson):
        return coded(HANDLER_FAILED, f"the result of {operation.name} cannot be written as JSON: {error}")
    told = fault(operation.name, error)
    if isinstance(error, (AttributeError, TypeError)) and not isinstance(error, Misuse) and call.unawaited:
        # It has taken what it asked for to be the answer.
        told.message += f"; {forgotten(call)}"
    return told


def hook_failure(link: Link, name: str, error: BaseException) -> Error:
    """As :func:`failure`, where one of the plugin's hooks has raised."""
    if isinstance(error, Unfit):
        where = f"{error.path}: " if error.path else ""
        return coded(INVALID_PARAMS, f"the configuration does not fit: {where}{error.expected}")
    if isinstance(error, Error):
        return error
    tell_stack(link, f"{name} failed", error)
    return reason(error)


def tell_stack(link: Link, what: str, error: BaseException, call: Optional[Call] = None) -> None:
    """Tells the log of a fault; a person's Ctrl-C goes on."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(stack) > 2 * STACK_END_MAX:
        stack = f"{stack[:STACK_END_MAX]}\n…\n{stack[-STACK_END_MAX:]}"
    for entry in _entries(f"{what}:\n{stack}"):
        link.log("error", entry, call)


def _entries(text: str) -> Iterator[str]:
    """A text in parts that a host shows whole, parted between lines."""
    entry: List[str] = []
    size = 0
    for line in text.splitlines():
        size += len(to_bytes(line)) + 1
        if size > LOG_ENTRY_MAX and entry:
            yield "\n".join(entry)
            entry, size = [], len(to_bytes(line)) + 1
        entry.append(line)
    yield "\n".join(entry)


def remark(text: str) -> None:
    """Says something on stderr, on a line of its own, whatever was printed before."""
    # Of a line that is not begun nothing is to be seen in the log.
    complain(f"\n{text}")


def complain(text: str) -> None:
    """Says something on stderr; where even that is gone, nobody is left to be told."""
    try:
        sys.stderr.write(text.rstrip("\n") + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass

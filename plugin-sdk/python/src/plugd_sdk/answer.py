"""What requests of the host are answered: results, failures, and what is told of a fault."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any, Dict

from .asked import NotAwaited
from .call import Call
from .encode import NotJson, dumps
from .errors import HANDLER_FAILED, INVALID_PARAMS, Error, coded, fault, reason
from .forms import Unfit
from .operation import unfit_argument
from .reply import Reply


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
    """What a caller is told where a handler has raised; of a fault, the stack goes to stderr."""
    operation = call.operation
    if isinstance(error, Unfit):
        return unfit_argument(error)
    if isinstance(error, NotJson):
        return coded(HANDLER_FAILED, f"the result of {operation.name} cannot be written as JSON: {error}")
    if isinstance(error, NotAwaited):
        tell_stack(f"{operation.name} failed (call {call.call_id})", error)
        return coded(HANDLER_FAILED, str(error))
    if isinstance(error, TypeError):
        # Of calling it, perhaps: the host checks arguments, but a test's may not fit.
        error = operation.unfit(call.arguments) or error
    if isinstance(error, Error):
        return error
    tell_stack(f"{operation.name} failed (call {call.call_id})", error)
    return fault(operation.name, error)


def hook_failure(name: str, error: BaseException) -> Error:
    """As :func:`failure`, where one of the plugin's hooks has raised."""
    if isinstance(error, Unfit):
        where = f"{error.path}: " if error.path else ""
        return coded(INVALID_PARAMS, f"the configuration does not fit: {where}{error.expected}")
    if isinstance(error, Error):
        return error
    tell_stack(f"{name} failed", error)
    return reason(error)


def tell_stack(what: str, error: BaseException) -> None:
    """Tells stderr of a fault; a person's Ctrl-C goes on."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    complain(f"{what}:\n" + "".join(traceback.format_exception(type(error), error, error.__traceback__)))


def complain(text: str) -> None:
    """Says something on stderr; where even that is gone, nobody is left to be told."""
    try:
        sys.stderr.write(text.rstrip("\n") + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass

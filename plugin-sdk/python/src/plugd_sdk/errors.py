"""What a handler says when it fails, and how that goes over the wire."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Type

from .names import RULE, is_name, suggestion

#: The operation failed, in its own words.
OPERATION_FAILED = 1
#: A fault in the plugin: a handler raised what it did not mean to.
HANDLER_FAILED = 2
#: The call was cancelled.
CANCELLED = -32800
#: No such method, or no such operation.
METHOD_NOT_FOUND = -32601
#: What came with a request does not fit it.
INVALID_PARAMS = -32602

#: As much of an exception's text as an operator is told, in characters.
FAULT_TEXT_MAX = 300


class Error(Exception):
    """A failure in the plugin's own words, for callers to read and act on.

    ``name`` is in snake case, for programs to tell failures apart; any other is a ``ValueError``, and callers
    are told the message all the same. ``message`` says what happened; ``hint`` what the caller can do about
    it; ``retryable`` that the same call may succeed later::

        raise Error("ticket_not_found", "there is no ticket TK-9", hint="list_open shows those there are")

    Raised ``from`` the error of a failed :meth:`Context.call`, it hands on what went wrong there.
    """

    #: The JSON-RPC code it has on the wire.
    code: int = OPERATION_FAILED

    def __init__(
        self, name: Optional[str], message: str, *, hint: Optional[str] = None, retryable: bool = False
    ) -> None:
        if name is not None and not is_name(name):
            raise BadName(name, message)
        super().__init__(message)
        self.name = name
        self.message = message
        self.hint = hint
        self.retryable = retryable
        #: The inner call that failed, as the host told it.
        self.cause: Optional[Dict[str, Any]] = None

    def __reduce__(self) -> Any:
        """Lets a failure travel between processes, as from a pool of workers."""
        return _rebuild, (type(self), self.to_wire(), self.code)

    def to_wire(self) -> Dict[str, Any]:
        """The error object of a JSON-RPC answer."""
        cause = self.cause
        if cause is None and isinstance(self.__cause__, Error):
            cause = self.__cause__.cause
        said = {"name": self.name, "hint": self.hint, "retryable": self.retryable or None, "cause": cause}
        data = {member: value for member, value in said.items() if value is not None}
        error: Dict[str, Any] = {"code": self.code, "message": self.message}
        if data:
            error["data"] = data
        return error

    @staticmethod
    def from_wire(error: Mapping[str, Any]) -> "Error":
        """The failure that an error object of the host tells of."""
        code = error.get("code", HANDLER_FAILED)
        return _rebuild(Cancelled if code == CANCELLED else Error, error, code)


class Misuse(TypeError):
    """Something of this package was used as it cannot be; its words quote nothing, so that callers may see them."""


class BadName(ValueError):
    """A failure was given a name that is none; callers are told what its author wrote all the same."""

    def __init__(self, name: object, message: object) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return f"{self.name!r} is no name of a failure: {RULE}{suggestion(str(self.name))}"


class Cancelled(Error):
    """The call was cancelled: nobody waits for its answer any more.

    Raised by :meth:`Context.check` and by whatever waits on behalf of a cancelled call.
    """

    code = CANCELLED

    def __init__(self, name: Optional[str] = None, message: str = "the call was cancelled", **said: Any) -> None:
        super().__init__(name, message, **said)


class DeclarationError(ValueError):
    """A plugin is declared wrongly; ``faults`` has everything that is, a sentence each."""

    def __init__(self, faults: List[str]) -> None:
        super().__init__("the plugin is declared wrongly:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = faults


def coded(code: int, message: str) -> Error:
    """A failure with a code of the protocol's and no name."""
    error = Error(None, message)
    error.code = code
    return error


def fault(what: str, exception: BaseException) -> Error:
    """What a caller is told of an exception that no handler means to raise: its class.

    Its text may quote what is not for callers, such as a secret among the arguments: the log has it.
    """
    if isinstance(exception, BadName):
        told = f"{exception.message}; a fault in the plugin: {exception.name!r} is no name of a failure"
        return coded(HANDLER_FAILED, told)
    if isinstance(exception, Misuse):
        return coded(HANDLER_FAILED, f"{what} failed: {exception}")
    return coded(HANDLER_FAILED, f"{what} failed unexpectedly: it raised {type(exception).__name__}")


def reason(exception: BaseException) -> Error:
    """What an operator is told of an exception of a hook: why the plugin does not start."""
    kind = type(exception).__name__
    try:
        said = f"{exception.message}; {exception}" if isinstance(exception, BadName) else str(exception)
        text = " ".join(said.split()) or kind
    except Exception:
        text = kind
    if isinstance(exception, (KeyError, SystemExit)):
        # Which alone would say too little.
        text = f"{kind}: {text}"
    if len(text) > FAULT_TEXT_MAX:
        text = text[: FAULT_TEXT_MAX - 1] + "…"
    return coded(HANDLER_FAILED, text)


def _rebuild(kind: Type[Error], wire: Mapping[str, Any], code: int) -> Error:
    data = wire.get("data")
    if not isinstance(data, dict):
        data = {}
    # A class of an author's may have an __init__ of its own.
    error = kind.__new__(kind)
    message, retryable = str(wire.get("message", "")), data.get("retryable") is True
    Error.__init__(error, None, message, hint=data.get("hint"), retryable=retryable)
    # As it came: a host's name is not for us to refuse.
    error.name = data.get("name")
    error.code = code
    error.cause = data.get("cause")
    return error

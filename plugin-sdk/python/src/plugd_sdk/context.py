"""Everything about one call, and the way from it to the host."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping, Optional, Type, TypeVar, Union, overload

from . import host
from .call import Call
from .encode import NotJson, dumps
from .errors import Cancelled, Misuse
from .host import HostRequest, Question
from .link import Link
from .reply import HostReply

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
Self = TypeVar("Self", bound="CallContext")

#: As much of a line for the log as is sent, in characters.
LOG_LINE_MAX = 64 * 1024


class Log:
    """Lines for the plugin's log."""

    def __init__(self, link: Link, call: Optional[Call] = None) -> None:
        self._link = link
        self._call = call

    def log(self, level: str, message: object) -> None:
        """Writes a line; the level is ``trace``, ``debug``, ``info``, ``warn`` or ``error``."""
        self._link.log(level, str(message)[:LOG_LINE_MAX], self._call)

    def debug(self, message: object) -> None:
        """Logs for finding faults."""
        self.log("debug", message)

    def info(self, message: object) -> None:
        """Logs something normal."""
        self.log("info", message)

    def warn(self, message: object) -> None:
        """Logs something odd that was handled."""
        self.log("warn", message)

    def error(self, message: object) -> None:
        """Logs a failure."""
        self.log("error", message)

    def progress(
        self, done: Union[int, float], total: Union[int, float, None] = None, message: Optional[str] = None
    ) -> None:
        """Says how far it is: ``done`` of ``total``, where the total is known.

        :raises TypeError: where either is no number, or the message no text.
        """
        _check_progress(done, total, message)
        params: Dict[str, Any] = {"done": done, "total": total, "message": message}
        self._notify("progress", {name: value for name, value in params.items() if value is not None})

    def _notify(self, method: str, params: Dict[str, Any]) -> None:
        about = {} if self._call is None else {"call_id": self._call.call_id}
        self._link.notify(method, {**about, **params})


class CallContext(Log):
    """What a context knows and says without waiting for anything."""

    _call: Call

    def __init__(self, call: Call) -> None:
        # As Log does, without the way there: this is made for every call.
        self._call = call
        self._link = call.link

    @classmethod
    def for_test(
        cls: Type[Self],
        *,
        state: Any = None,
        deadline: float = 30.0,
        cancelled: bool = False,
        **said: Any,
    ) -> Self:
        """A call without a host, for tests of handlers as plain functions.

        What it logs is lost, and what it asks of a host fails with the name ``no_host``; where those
        matter, use :class:`plugd_sdk.testing.Host`. ``said`` is what the host would say of the call:
        ``session_id``, ``traceparent``, ``attempt``, ``idempotency_key``, ``caller``, ``locale``.
        """
        from .operation import Operation

        link = Link()
        link.state = state
        said = {"call_id": "test", "deadline_ms": deadline * 1000, **said}
        call = Call(link, 0, Operation(lambda: None, {"name": "test"}), {}, said)
        call.is_cancelled = cancelled
        return cls(call)

    @property
    def state(self) -> Any:
        """What the plugin's ``init`` gave; ``None`` without one."""
        return self._link.state

    @property
    def call_id(self) -> str:
        """The call's id, the host's own."""
        return self._call.call_id

    @property
    def session_id(self) -> Optional[str]:
        """The session the call belongs to."""
        return self._call.said.get("session_id")

    @property
    def traceparent(self) -> Optional[str]:
        """The W3C trace context to hand on to remote services."""
        return self._call.said.get("traceparent")

    @property
    def trace_id(self) -> Optional[str]:
        """The 32 hexadecimal digits of the trace that the call belongs to."""
        return self._call.trace_id

    @property
    def attempt(self) -> int:
        """1, or more where the host tries an idempotent call again."""
        return int(self._call.said.get("attempt", 1))

    @property
    def idempotency_key(self) -> Optional[str]:
        """The caller's key for having this done once."""
        return self._call.said.get("idempotency_key")

    @property
    def caller(self) -> Optional[str]:
        """Who calls: a caller's profile, or ``plugin:NAME``; ``None`` for the owner."""
        return self._call.said.get("caller")

    @property
    def locale(self) -> Optional[str]:
        """The language the caller speaks, a BCP 47 tag."""
        return self._call.said.get("locale")

    @property
    def deadline(self) -> float:
        """When the host stops waiting, on the clock of :func:`time.monotonic`.

        It moves by as long as people took to answer :meth:`ask`.
        """
        return self._call.deadline

    @property
    def time_left(self) -> float:
        """How long the host still waits, in seconds; 0 once the deadline has passed."""
        return max(0.0, self._call.deadline - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the host has asked to stop: after a timeout, too."""
        if not self._call.is_cancelled:
            self._link.look()
        return self._call.is_cancelled

    def check(self) -> None:
        """Stops here once the call is cancelled; to be called between two steps.

        :raises Cancelled: then.
        """
        if self.cancelled:
            raise Cancelled()

    def partial(self, data: Any) -> None:
        """Sends a piece of the result ahead of it; the answer must still be whole.

        :raises ValueError: where it cannot be written as JSON.
        """
        self._notify("partial", {"data": data})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of call {self.call_id}>"


class Context(CallContext):
    """One call, for a handler that is a plain ``def``: who asked, how long there is, and the host.

    A parameter annotated ``Context`` gets it, whatever its name. Hand it on to whatever works for the
    call, also in other threads: there is nothing ambient.
    """

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Sleeps until the call is cancelled, at most for so many seconds; whether it is."""
        return self._link.wait_cancelled(self._call, timeout)

    def call(self, operation: str, arguments: Optional[Mapping[str, Any]] = None, /, **named: Any) -> HostReply:
        """Uses another plugin's operation, ``plugin.operation``, and waits for its answer.

        The manifest must name that plugin (:meth:`Plugin.requires`). The inner call shares this one's
        deadline, session and trace, and ends when this one is cancelled.

        :raises Error: the inner call's failure, with its cause; not caught, it is this call's, too.
        """
        return self._perform(host.call(operation, arguments, named))

    @overload
    def ask(self, prompt: str, /, *, name: str = ...) -> str: ...
    @overload
    def ask(
        self, prompt: str, kind: Type[T], /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...
    ) -> T: ...
    @overload
    def ask(self, prompt: str, kind: Any, /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...) -> Any: ...

    def ask(
        self,
        prompt: str,
        kind: Any = str,
        /,
        *,
        name: str = host.ONLY_QUESTION,
        schema: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        """Asks the person behind the call, and waits for the answer: ``ctx.ask("Remove it?", bool)``.

        ``kind`` is the type of the answer, any that a parameter may have; ``schema`` says more of it.
        The call's clock stands still meanwhile.

        :raises Error: named ``nobody_to_ask`` where a program calls that cannot be asked, ``declined``,
            ``expired``.
        """
        return self._perform(host.ask(Question(name, prompt, kind, schema)))

    def ask_secret(self, prompt: str, /, *, name: str = host.ONLY_QUESTION) -> str:
        """As :meth:`ask`, for a secret: it is not shown while it is typed, and never logged."""
        return str(self._perform(host.ask(Question(name, prompt, sensitive=True))))

    def ask_many(self, questions: Iterable[Question]) -> Dict[str, Any]:
        """Asks several things at once, at most 16; the answers by the names of the questions."""
        return self._perform(host.ask_many(questions))

    @property
    def vars(self) -> "Vars":
        """Variables of the session. No host offers them yet, and how they look may change."""
        return Vars(self)

    def emit(self, event: str, data: Any = None) -> None:
        """Tells whoever subscribed to an event. No host offers this yet, and how it looks may change."""
        self._perform(host.emit(event, data))

    def _perform(self, request: HostRequest[T]) -> T:
        return request.read(self._link.request(self._call, request))


class Vars:
    """Variables of the session that a call belongs to."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, name: str, default: Any = None) -> Any:
        """What the variable holds, or ``default``."""
        return self._context._perform(host.get_variables([name])).get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Puts a value into the variable."""
        self._context._perform(host.set_variable(name, value))

    def compare_and_set(self, name: str, expected: Any, value: Any) -> bool:
        """Puts a value into the variable if it holds what is expected; whether it did."""
        return self._context._perform(host.compare_and_set(name, expected, value))


class InitContext(Log):
    """What an ``init`` knows besides the configuration."""

    def __init__(self, link: Link, data_dir: str, locale: str) -> None:
        super().__init__(link)
        self._data_dir = data_dir
        #: The language to speak, a BCP 47 tag.
        self.locale = locale

    @property
    def data_dir(self) -> "Path":
        """A folder of the plugin's own that outlives its runs."""
        from pathlib import Path

        return Path(self._data_dir)

    @classmethod
    def for_test(cls, data_dir: Union[str, "Path"] = ".", locale: str = "en") -> "InitContext":
        """A start without a host, for tests of an ``init`` as a plain function."""
        return cls(Link(), str(data_dir), locale)


def _check_progress(done: object, total: object, message: object) -> None:
    # The value itself may be a secret.
    for name, value in (("done", done), ("total", total)):
        if not (_is_number(value) or (value is None and name == "total")):
            raise Misuse(f"progress takes numbers, {_PROGRESS}: {name} is {_kind(value)}")
    if not (message is None or isinstance(message, str)):
        raise Misuse(f"the message of progress is a text, {_PROGRESS}: it is {_kind(message)}")


_PROGRESS = "such as progress(3, 10, \"reading\") or progress(0.5, message=\"reading\")"


def _is_number(value: object) -> bool:
    if value.__class__ is int or value.__class__ is float:
        return value == value and value not in (math.inf, -math.inf)
    if value is None or isinstance(value, (bool, str)):
        return False
    try:
        # Those of numpy, Decimals and their like are written as numbers, too.
        return dumps(value)[0] in "-0123456789"
    except NotJson:
        return False


def _kind(value: object) -> str:
    return str(value) if isinstance(value, float) else f"of the type {type(value).__name__}"

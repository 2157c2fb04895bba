"""What a handler that is an ``async def`` asks for, which it has to await."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generator, TypeVar

from .call import Call

T = TypeVar("T")


class NotAwaited(TypeError):
    """An ``await`` is missing: what was asked for is used as if it were the answer."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} without awaiting ctx.{what}: is an await missing?")


class Asked(Coroutine[Any, Any, T]):
    """An answer that is still to come.

    Any other object counts as true, so that ``if ctx.ask("Remove it?", bool)`` would always go on, and a
    coroutine that nobody awaits asks nothing. This one has no truth value, and no attributes of the answer,
    and the call of which one is left behind fails.
    """

    def __init__(self, call: Call, what: str, work: "Coroutine[Any, Any, T]") -> None:
        self._call = call
        self._what = what
        self._work = work
        call.unawaited = (*call.unawaited, self)

    def __await__(self) -> Generator[Any, Any, T]:
        self._is_taken()
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """Goes on; a task does this."""
        self._is_taken()
        return self._work.send(value)

    def throw(self, *raised: Any) -> Any:
        """Has it fail; a task does this."""
        self._is_taken()
        return self._work.throw(*raised)

    def close(self) -> None:
        """Nobody wants the answer any more."""
        self._is_taken()
        self._work.close()

    def __bool__(self) -> bool:
        raise NotAwaited(f"{self._call.operation.name} goes on", self._what)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"what ctx.{self._what} gives has no {name} before it is awaited: is an await missing?")

    def _is_taken(self) -> None:
        if self in self._call.unawaited:
            self._call.unawaited = tuple(asked for asked in self._call.unawaited if asked is not self)


def check_awaited(call: Call) -> None:
    """:raises NotAwaited: where the handler of a call has ended without awaiting what it asked for."""
    if call.unawaited:
        raise NotAwaited(f"{call.operation.name} ended", call.unawaited[0]._what)

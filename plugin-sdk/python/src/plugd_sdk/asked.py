"""What a handler that is an ``async def`` asks for, which it has to await."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Generator, NoReturn, TypeVar

from .call import Call
from .errors import Misuse

T = TypeVar("T")


class NotAwaited(Misuse):
    """An ``await`` is missing: what was asked for is used as if it were the answer."""


class NoAnswerYet(NotAwaited, AttributeError):
    """The same, where a member of the answer is wanted."""


class Asked(Coroutine[Any, Any, T]):
    """An answer that is still to come.

    Any other object counts as true, so that ``if ctx.ask("Remove it?", bool)`` would always go on, and a
    coroutine that nobody awaits asks nothing. This one has no truth value, and neither members nor attributes
    of the answer, and the call of which one is left behind fails.
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
        raise NotAwaited(f"it goes on without an answer; {_question(self._what)}")

    if not TYPE_CHECKING:
        # Type checkers are to go on refusing both.

        def __getattr__(self, name: str) -> NoReturn:
            raise NoAnswerYet(f"it wants {name} of an answer that has not come; {_question(self._what)}")

        def __getitem__(self, key: object) -> NoReturn:
            raise NotAwaited(f"it wants a part of an answer that has not come; {_question(self._what)}")

    def _is_taken(self) -> None:
        if self in self._call.unawaited:
            self._call.unawaited = tuple(asked for asked in self._call.unawaited if asked is not self)


def check_awaited(call: Call) -> None:
    """:raises NotAwaited: where the handler of a call has ended without awaiting what it asked for."""
    if call.unawaited:
        raise NotAwaited(f"it ended without an answer; {forgotten(call)}")


def forgotten(call: Call) -> str:
    """What to do where a call has asked for something and not awaited it."""
    return _question(call.unawaited[0]._what)


def _question(what: str) -> str:
    return f"did you forget `await` before {what}(…)?"

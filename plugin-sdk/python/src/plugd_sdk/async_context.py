"""The context of a handler that is an ``async def``: what waits is awaited."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Dict, Iterable, Mapping, Optional, Type, TypeVar, overload

from . import host
from .asked import Asked
from .context import CallContext
from .host import HostRequest, Question
from .reply import HostReply

T = TypeVar("T")


class AsyncContext(CallContext):
    """One call, for a handler that is an ``async def``: as :class:`Context`, what waits is awaited.

    Cancelling the call cancels the handler's task, so ``asyncio.CancelledError`` is raised where it awaits.
    """

    def wait_cancelled(self, timeout: Optional[float] = None) -> Asked[bool]:
        """As :meth:`Context.wait_cancelled`, for tasks that the handler has started."""
        return self._asked("wait_cancelled", self._wait_cancelled(timeout))

    async def _wait_cancelled(self, timeout: Optional[float]) -> bool:
        import asyncio

        cancelled: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not cancelled.done():
                cancelled.set_result(None)

        if not self._call.is_cancelled:
            self._call.on_cancel.append(wake)
            try:
                await asyncio.wait([cancelled], timeout=timeout)
            finally:
                self._call.on_cancel.remove(wake)
        return self._call.is_cancelled

    def call(
        self, operation: str, arguments: Optional[Mapping[str, Any]] = None, /, **named: Any
    ) -> Asked[HostReply]:
        """As :meth:`Context.call`."""
        return self._asked("call", self._perform(host.call(operation, arguments, named)))

    @overload
    def ask(self, prompt: str, /, *, name: str = ...) -> Asked[str]: ...
    @overload
    def ask(
        self, prompt: str, kind: Type[T], /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...
    ) -> Asked[T]: ...
    @overload
    def ask(
        self, prompt: str, kind: Any, /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...
    ) -> Asked[Any]: ...

    def ask(
        self,
        prompt: str,
        kind: Any = str,
        /,
        *,
        name: str = host.ONLY_QUESTION,
        schema: Optional[Mapping[str, Any]] = None,
    ) -> Asked[Any]:
        """As :meth:`Context.ask`."""
        return self._asked("ask", self._perform(host.ask(Question(name, prompt, kind, schema))))

    def ask_secret(self, prompt: str, /, *, name: str = host.ONLY_QUESTION) -> Asked[str]:
        """As :meth:`Context.ask_secret`."""
        return self._asked("ask_secret", self._perform(host.ask(Question(name, prompt, sensitive=True))))

    def ask_many(self, questions: Iterable[Question]) -> Asked[Dict[str, Any]]:
        """As :meth:`Context.ask_many`."""
        return self._asked("ask_many", self._perform(host.ask_many(questions)))

    @property
    def vars(self) -> "AsyncVars":
        """As :attr:`Context.vars`."""
        return AsyncVars(self)

    def emit(self, event: str, data: Any = None) -> Asked[None]:
        """As :meth:`Context.emit`."""
        return self._asked("emit", self._perform(host.emit(event, data)))

    def _asked(self, what: str, work: Coroutine[Any, Any, T]) -> Asked[T]:
        return Asked(self._call, what, work)

    async def _perform(self, request: HostRequest[T]) -> T:
        return request.read(await self._link.request_async(self._call, request))


class AsyncVars:
    """As :class:`Vars`, to be awaited."""

    def __init__(self, context: AsyncContext) -> None:
        self._context = context

    def get(self, name: str, default: Any = None) -> Asked[Any]:
        """As :meth:`Vars.get`."""
        return self._asked("vars.get", self._get(name, default))

    def set(self, name: str, value: Any) -> Asked[None]:
        """As :meth:`Vars.set`."""
        return self._asked("vars.set", self._context._perform(host.set_variable(name, value)))

    def compare_and_set(self, name: str, expected: Any, value: Any) -> Asked[bool]:
        """As :meth:`Vars.compare_and_set`."""
        work = self._context._perform(host.compare_and_set(name, expected, value))
        return self._asked("vars.compare_and_set", work)

    async def _get(self, name: str, default: Any) -> Any:
        return (await self._context._perform(host.get_variables([name]))).get(name, default)

    def _asked(self, what: str, work: Coroutine[Any, Any, T]) -> Asked[T]:
        return self._context._asked(what, work)

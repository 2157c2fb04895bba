"""The context of a handler that is an ``async def``: what waits is awaited."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Optional, Type, TypeVar, overload

from . import host
from .context import CallContext
from .host import HostRequest, Question
from .reply import HostReply

T = TypeVar("T")


class AsyncContext(CallContext):
    """One call, for a handler that is an ``async def``: as :class:`Context`, what waits is awaited.

    Cancelling the call cancels the handler's task, so ``asyncio.CancelledError`` is raised where it awaits.
    """

    async def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """As :meth:`Context.wait_cancelled`, for tasks that the handler has started."""
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

    async def call(self, operation: str, arguments: Optional[Mapping[str, Any]] = None, /, **named: Any) -> HostReply:
        """As :meth:`Context.call`."""
        return await self._perform(host.call(operation, arguments, named))

    @overload
    async def ask(self, prompt: str, /, *, name: str = ...) -> str: ...
    @overload
    async def ask(
        self, prompt: str, kind: Type[T], /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...
    ) -> T: ...
    @overload
    async def ask(
        self, prompt: str, kind: Any, /, *, name: str = ..., schema: Optional[Mapping[str, Any]] = ...
    ) -> Any: ...

    async def ask(
        self,
        prompt: str,
        kind: Any = str,
        /,
        *,
        name: str = host.ONLY_QUESTION,
        schema: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        """As :meth:`Context.ask`."""
        return await self._perform(host.ask(Question(name, prompt, kind, schema)))

    async def ask_secret(self, prompt: str, /, *, name: str = host.ONLY_QUESTION) -> str:
        """As :meth:`Context.ask_secret`."""
        return str(await self._perform(host.ask(Question(name, prompt, sensitive=True))))

    async def ask_many(self, questions: Iterable[Question]) -> Dict[str, Any]:
        """As :meth:`Context.ask_many`."""
        return await self._perform(host.ask_many(questions))

    @property
    def vars(self) -> "AsyncVars":
        """As :attr:`Context.vars`."""
        return AsyncVars(self)

    async def emit(self, event: str, data: Any = None) -> None:
        """As :meth:`Context.emit`."""
        await self._perform(host.emit(event, data))

    async def _perform(self, request: HostRequest[T]) -> T:
        return request.read(await self._link.request_async(self._call, request))


class AsyncVars:
    """As :class:`Vars`, to be awaited."""

    def __init__(self, context: AsyncContext) -> None:
        self._context = context

    async def get(self, name: str, default: Any = None) -> Any:
        """As :meth:`Vars.get`."""
        return (await self._context._perform(host.get_variables([name]))).get(name, default)

    async def set(self, name: str, value: Any) -> None:
        """As :meth:`Vars.set`."""
        await self._context._perform(host.set_variable(name, value))

    async def compare_and_set(self, name: str, expected: Any, value: Any) -> bool:
        """As :meth:`Vars.compare_and_set`."""
        return await self._context._perform(host.compare_and_set(name, expected, value))

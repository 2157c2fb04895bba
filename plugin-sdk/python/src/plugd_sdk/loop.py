"""An event loop that reads and runs calls, for plugins that have an ``async def``."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Dict, Optional, Set

from .call import Call
from .host import HostRequest
from .lanes import LAST_WORDS, Lanes, Pool
from .pending import Pending, Waiter

if TYPE_CHECKING:
    from .session import Session


class LoopLanes(Lanes):
    """An event loop reads, and runs every ``async def``; each plain ``def`` runs in a thread."""

    def __init__(self, session: "Session", concurrency: int) -> None:
        super().__init__(session)
        self._pool = Pool(concurrency)
        self._loop: asyncio.AbstractEventLoop
        self._over: "asyncio.Future[None]"
        self._opening: "Optional[asyncio.Task[None]]" = None
        # The event loop itself holds tasks only weakly.
        self._tasks: "Set[asyncio.Task[None]]" = set()

    def run(self) -> None:
        """Reads and runs until the host is gone, or has told the plugin to shut down."""
        asyncio.run(self._converse())

    async def _converse(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        with self._reading.held():
            source = self._session.wire.fileno()
            try:
                self._loop.add_reader(source, self._read)
            except PermissionError:
                # A file is always ready to be read, and no loop waits for one.
                while not self._session.wire.ended:
                    self._read()
            await self._over
            self._loop.remove_reader(source)
        if self._session.wire.ended and self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORDS)
        self._pool.close()

    def _read(self) -> None:
        self._reading.read_once()
        if self._session.wire.ended:
            self._leave()

    def _leave(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def submit(self, call: Call) -> None:
        """Takes a call that has come."""
        self._start(self._run_call(call))

    def submit_hook(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """Takes a request to run a hook."""
        if name == "shutdown":
            self._start(self._shut_down(request_id, params))
            return
        task = self._start(self._session.run_hook_async(name, request_id, params))
        if name == "init":
            self._opening = task

    def _start(self, work: Any) -> "asyncio.Task[None]":
        task: "asyncio.Task[None]" = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_call(self, call: Call) -> None:
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if call.operation.is_async:
            task = asyncio.current_task()
            assert task is not None, "a coroutine of ours runs in a task"
            # Not before it runs: a task that is cancelled earlier never answers.
            call.on_cancel.append(task.cancel)
            await self._session.perform_async(call)
            return
        done = self._loop.create_future()
        context = copy_context()

        def run() -> None:
            context.run(self._session.perform, call)
            self._loop.call_soon_threadsafe(done.set_result, None)

        self._pool.submit(run)
        await done

    async def _shut_down(self, request_id: Any, params: Dict[str, Any]) -> None:
        calls = self._tasks - {asyncio.current_task()}
        if calls:
            await asyncio.wait(calls, timeout=params.get("grace_ms", 0) / 2000)
        await self._session.run_hook_async("shutdown", request_id, params)
        self._leave()


class TaskWaiter(Waiter):
    """Waits in a task, in the event loop that reads."""

    def __init__(self, pending: Pending, call: Call, request: HostRequest[Any]) -> None:
        super().__init__(pending, call, request)
        self.future: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()

    def take(self, outcome: Any) -> None:
        """Takes the outcome, and wakes who waits for it."""
        super().take(outcome)
        if not self.future.done():
            self.future.set_result(None)

"""How calls run: in the thread that reads, in several threads, or in an event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, Optional, Tuple

from .call import Call

if TYPE_CHECKING:
    from .session import Session

#: After the end of input, answers that are nearly there still go out: for a conversation that was
#: piped in by hand. In seconds.
LAST_WORDS = 0.25

#: How often a plugin that is to leave looks whether its calls have ended, in seconds.
LOOK_EVERY = 0.02

#: A hook to run: its name, the id of the request, and its params.
HookRequest = Tuple[str, Any, Dict[str, Any]]


class Lanes:
    """Takes the host's requests, runs them, and reads until the conversation is over."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._reading = session.reading

    def run(self) -> None:
        """Reads and runs until the host is gone, or has told the plugin to shut down."""
        raise NotImplementedError

    def submit(self, call: Call) -> None:
        """Takes a call that has come; whoever reads calls this."""
        raise NotImplementedError

    def submit_hook(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """Takes a request to run a hook; whoever reads calls this."""
        raise NotImplementedError


class InlineLanes(Lanes):
    """One call at a time, in the thread that reads: nothing is handed over, nothing waits for a thread."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        # Bounded by the host, which sends no more calls at once than the manifest allows.
        self._jobs: Deque[Any] = deque()
        #: Set where a thread that a handler left behind reads, and something has come for this one.
        self._wake = threading.Event()
        self._is_following = False

    def run(self) -> None:
        """Reads and runs until the host is gone, or has told the plugin to shut down."""
        session, jobs, wire = self._session, self._jobs, self._session.wire
        while not session.life.is_over:
            if jobs:
                job = jobs.popleft()
                if job.__class__ is Call:
                    # In a context of its own, so that nothing of one call is seen by the next.
                    copy_context().run(session.perform, job)
                else:
                    session.run_hook(*job)
            elif wire.ended:
                return
            elif not self._reading.read_while(self._is_idle):
                self._is_following = True
                self._reading.wait(self._wake, self._is_idle)
                self._is_following = False

    def submit(self, call: Call) -> None:
        """Takes a call that has come."""
        self._jobs.append(call)
        if self._is_following:
            self._wake.set()

    def submit_hook(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """Takes a request to run a hook."""
        self._jobs.append((name, request_id, params))
        if self._is_following:
            self._wake.set()

    def _is_idle(self) -> bool:
        return not self._jobs


class ThreadLanes(Lanes):
    """Several calls at once, each in a thread; the main one reads, opens and releases."""

    def __init__(self, session: "Session", concurrency: int) -> None:
        super().__init__(session)
        self._pool = Pool(concurrency)
        self._hooks: Deque[HookRequest] = deque()
        #: Calls that came before the plugin was open.
        self._deferred: Deque[Call] = deque()

    def run(self) -> None:
        """Reads and runs until the host is gone, or has told the plugin to shut down."""
        session, hooks = self._session, self._hooks
        while not session.life.is_over:
            self._reading.read_while(lambda: not hooks)
            if hooks:
                name, request_id, params = hooks[0]
                if name == "shutdown":
                    self._wait_for_calls(params.get("grace_ms", 0) / 2000)
                session.run_hook(name, request_id, params)
                hooks.popleft()
                while self._deferred and not hooks:
                    self.submit(self._deferred.popleft())
            elif session.wire.ended:
                self._wait_for_calls(LAST_WORDS)
                break
        self._pool.close()

    def submit(self, call: Call) -> None:
        """Takes a call that has come."""
        if self._hooks:
            self._deferred.append(call)
        else:
            context = copy_context()
            self._pool.submit(lambda: context.run(self._session.perform, call))

    def submit_hook(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """Takes a request to run a hook."""
        if name == "reload":
            # While calls go on, which may wait for answers that have to be read.
            arguments = (self._session.run_hook, name, request_id, params)
            threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()
        else:
            self._hooks.append((name, request_id, params))

    def _wait_for_calls(self, seconds: float) -> None:
        until, wake = time.monotonic() + seconds, threading.Event()
        while self._pool.is_busy and time.monotonic() < until:
            # Reading meanwhile, for their sake: so that one has ended is not seen before the next look.
            self._reading.wait(wake, lambda: self._pool.is_busy, time.monotonic() + LOOK_EVERY)


class Pool:
    """Up to so many threads, each started once it is needed; they end with the process."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._threads: List[threading.Thread] = []
        #: Jobs that were submitted and have not ended.
        self._open = 0
        self._lock = threading.Lock()
        # Bounded by the host, as above.
        self._jobs: "queue.SimpleQueue[Optional[Callable[[], Any]]]" = queue.SimpleQueue()

    def submit(self, job: Callable[[], Any]) -> None:
        """Has a job run by the next thread that is free."""
        with self._lock:
            self._open += 1
            if len(self._threads) < min(self._open, self._size):
                thread = threading.Thread(target=self._work, name=f"lane-{len(self._threads) + 1}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    @property
    def is_busy(self) -> bool:
        """Whether a job runs, or waits to."""
        return self._open > 0

    def close(self) -> None:
        """Has the threads end once they are free."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()
            with self._lock:
                self._open -= 1


def lanes_for(session: "Session", concurrency: int, *, is_async: bool) -> Lanes:
    """The lanes for a plugin that runs so many calls at once."""
    if is_async:
        # Only where it is needed: loading asyncio takes as long as all the rest.
        from .loop import LoopLanes

        return LoopLanes(session, concurrency)
    if concurrency > 1:
        return ThreadLanes(session, concurrency)
    return InlineLanes(session)

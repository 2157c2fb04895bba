"""Who reads: one thread at a time, for all that wait.

A plugin that runs one call at a time runs it in the thread that reads, so that no call is handed from
thread to thread. Whatever waits for the host meanwhile reads for itself and for everybody else.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Optional, Set

from .wire import Wire


class Reading:
    """Hands lines to ``receive``, in whichever thread reads just then."""

    def __init__(self, wire: Wire, receive: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._wire = wire
        self._receive = receive
        self._ended = ended
        self._lock = threading.Lock()
        #: Threads that wait while another one reads; one of them takes over from it.
        self._followers: Set[threading.Event] = set()

    def read_while(self, waiting: Callable[[], bool], until: Optional[float] = None) -> bool:
        """Reads as long as there is something to wait for; ``False`` where another thread reads.

        ``until`` is a moment of :func:`time.monotonic`.
        """
        if not self._lock.acquire(False):
            return False
        try:
            while waiting() and not self._wire.ended:
                if until is not None and not self._wire.has_input(until - time.monotonic()):
                    break
                self.read_once()
        finally:
            self._release()
        return True

    def read_once(self) -> None:
        """Waits for input and hands it on; whoever calls this must be the one who reads."""
        for line in self._wire.read():
            self._receive(line)
        if self._wire.ended:
            self._ended()

    def look(self) -> None:
        """Takes in what is there already, unless another thread reads anyway."""
        if self._lock.acquire(False):
            try:
                while not self._wire.ended and self._wire.has_input():
                    self.read_once()
            finally:
                self._release()

    def wait(self, wake: threading.Event, waiting: Callable[[], bool], until: Optional[float] = None) -> None:
        """Waits while ``waiting()``, and reads meanwhile unless another thread does.

        Whoever changes what is waited for sets ``wake``.
        """
        self._followers.add(wake)
        try:
            while waiting():
                # In this order, so that nothing that comes in between is missed.
                wake.clear()
                left = None if until is None else until - time.monotonic()
                if not waiting() or (left is not None and left <= 0):
                    break
                if self._wire.ended:
                    if until is None:
                        # Nothing can come any more.
                        break
                    wake.wait(left)
                elif not self.read_while(waiting, until):
                    wake.wait(left)
        finally:
            self._followers.discard(wake)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else reads meanwhile."""
        with self._lock:
            yield

    def _release(self) -> None:
        self._lock.release()
        if self._followers:
            for wake in list(self._followers):
                wake.set()

"""One call while it runs: what the host said about it, and what has become of it since."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from .link import Link

if TYPE_CHECKING:
    from .asked import Asked
    from .operation import Operation

#: No call is given longer than this, whatever its deadline says, in milliseconds.
TIME_LEFT_MAX_MS = 24 * 60 * 60 * 1000

_asking = threading.Lock()


class Call:
    """One call; contexts are views of it."""

    # Defaults for what few calls ever change: setting them each time would cost every call.
    is_cancelled = False
    _asked_before = 0.0
    _asked_since = 0.0
    _open_questions = 0
    #: What the handler has asked for and not awaited yet.
    unawaited: "Tuple[Asked[Any], ...]" = ()

    def __init__(
        self, link: Link, request_id: Any, operation: "Operation", arguments: Dict[str, Any], said: Dict[str, Any]
    ) -> None:
        self.link = link
        self.request_id = request_id
        self.operation = operation
        self.arguments = arguments
        #: The ``context`` of the request.
        self.said = said
        self.received = time.monotonic()
        #: What is to happen when the call is cancelled.
        self.on_cancel: List[Callable[[], Any]] = []

    @property
    def call_id(self) -> str:
        """The call's id, the host's own."""
        return self.said["call_id"]  # type: ignore[no-any-return]

    @property
    def trace_id(self) -> Optional[str]:
        """The 32 hexadecimal digits of the trace that the call belongs to."""
        parts = str(self.said.get("traceparent") or "").split("-")
        return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 else None

    @property
    def deadline(self) -> float:
        """When the host stops waiting, on the clock of :func:`time.monotonic`."""
        given = min(float(self.said.get("deadline_ms", TIME_LEFT_MAX_MS)), TIME_LEFT_MAX_MS)
        deadline = self.received + given / 1000 + self._asked_before
        return deadline + time.monotonic() - self._asked_since if self._open_questions else deadline

    def cancel(self) -> None:
        """Nobody waits for this call any more; wakes whatever waits on its behalf."""
        self.is_cancelled = True
        for wake in list(self.on_cancel):
            wake()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """People are asked meanwhile: the deadline moves, as the host's does."""
        with _asking:
            self._open_questions += 1
            if self._open_questions == 1:
                self._asked_since = time.monotonic()
        try:
            yield
        finally:
            with _asking:
                self._open_questions -= 1
                if self._open_questions == 0:
                    self._asked_before += time.monotonic() - self._asked_since


#: The link of the plugin that runs here, where a process may have several: in tests.
serving: ContextVar[Optional[Link]] = ContextVar("plugd_sdk.serving", default=None)

#: The call that runs here, in this thread or task.
current: ContextVar[Optional[Call]] = ContextVar("plugd_sdk.current", default=None)

"""Requests of the host that wait for their answers."""

from __future__ import annotations

import itertools
import threading
from typing import Any, Dict, List, Mapping

from .call import Call
from .encode import dumps
from .errors import Cancelled, Error
from .host import HostRequest
from .link import no_host
from .reading import Reading
from .wire import FRAME_MAX, FrameTooLarge, Wire


class Pending:
    """Asks the host, and hands each answer to whoever waits for it."""

    def __init__(self, wire: Wire, reading: Reading) -> None:
        self._wire = wire
        self._reading = reading
        self._waiters: Dict[str, Waiter] = {}
        self._numbers = itertools.count(1)

    def ask(self, call: Call, request: HostRequest[Any]) -> Any:
        """Asks on behalf of a call, and waits: the host answers in time, or cancels the call.

        :raises Error: what the host says instead.
        """
        waiter = ThreadWaiter(self, call, request)
        with waiter:
            if request.asks_people:
                with call.asking():
                    self._reading.wait(waiter.wake, waiter.is_waiting)
            else:
                self._reading.wait(waiter.wake, waiter.is_waiting)
        return waiter.outcome()

    async def ask_async(self, call: Call, request: HostRequest[Any]) -> Any:
        """As :meth:`ask`, without blocking the event loop."""
        from .loop import TaskWaiter

        waiter = TaskWaiter(self, call, request)
        with waiter:
            if request.asks_people:
                with call.asking():
                    await waiter.future
            else:
                await waiter.future
        return waiter.outcome()

    def answered(self, message: Mapping[str, Any]) -> None:
        """Takes an answer of the host's; one that nobody waits for is dropped."""
        waiter = self._waiters.pop(message["id"], None) if isinstance(message["id"], str) else None
        if waiter is not None:
            error = message.get("error")
            waiter.take(message.get("result") if error is None else Error.from_wire(error))

    def host_gone(self) -> None:
        """No answer can come any more."""
        while self._waiters:
            _, waiter = self._waiters.popitem()
            waiter.take(no_host(waiter.request.what))

    def send(self, waiter: "Waiter") -> str:
        """Sends a request; gives the id under which its answer comes."""
        request_id = f"h{next(self._numbers)}"
        request = waiter.request
        params = {"call_id": waiter.call.call_id, **request.params}
        text = dumps({"jsonrpc": "2.0", "id": request_id, "method": request.method, "params": params})
        if len(text) > FRAME_MAX:
            raise FrameTooLarge(len(text))
        self._waiters[request_id] = waiter
        # A cancel, or the end, that came just before found nobody waiting yet.
        if waiter.call.is_cancelled:
            waiter.cancel()
        elif self._wire.ended:
            self.host_gone()
        else:
            self._wire.send(text)
        return request_id

    def forget(self, request_id: str) -> None:
        """Nobody waits for this answer any more."""
        self._waiters.pop(request_id, None)


class Waiter:
    """What waits for the answer to one request, from ``with`` to its end."""

    def __init__(self, pending: Pending, call: Call, request: HostRequest[Any]) -> None:
        self.call = call
        self.request = request
        self._pending = pending
        self._request_id = ""
        self._outcome: List[Any] = []

    def __enter__(self) -> None:
        self.call.on_cancel.append(self.cancel)
        try:
            self._request_id = self._pending.send(self)
        except ValueError:
            # It is no JSON, or too large.
            self.call.on_cancel.remove(self.cancel)
            raise

    def __exit__(self, *raised: object) -> None:
        self.call.on_cancel.remove(self.cancel)
        self._pending.forget(self._request_id)

    def take(self, outcome: Any) -> None:
        """Takes the outcome, of which only the first counts."""
        if not self._outcome:
            self._outcome.append(outcome)

    def cancel(self) -> None:
        """The call it belongs to is over."""
        self.take(Cancelled())

    def is_waiting(self) -> bool:
        """Whether nothing has come yet."""
        return not self._outcome

    def outcome(self) -> Any:
        """The result, or the failure as an exception."""
        outcome = self._outcome[0]
        if isinstance(outcome, Error):
            raise outcome
        return outcome


class ThreadWaiter(Waiter):
    """Waits in a thread."""

    def __init__(self, pending: Pending, call: Call, request: HostRequest[Any]) -> None:
        super().__init__(pending, call, request)
        self.wake = threading.Event()

    def take(self, outcome: Any) -> None:
        """Takes the outcome, and wakes who waits for it."""
        super().take(outcome)
        self.wake.set()

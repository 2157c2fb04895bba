"""The conversation with the host: takes its messages in, runs what they ask for, answers."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Mapping, Optional

from . import answer, errors
from .answer import remark
from .asked import check_awaited
from .async_context import AsyncContext
from .call import Call, current
from .context import CallContext, Context
from .encode import dumps
from .errors import Cancelled, Error, coded
from .host import HostRequest
from .lifecycle import Lifecycle
from .link import Link
from .operation import Operation
from .pending import Pending
from .reading import Reading
from .wire import FRAME_MAX, HEAD_MAX, FrameTooLarge, Wire

if TYPE_CHECKING:
    from .lanes import Lanes
    from .plugin import Plugin

#: The versions of the protocol that are spoken here.
VERSIONS = (1,)
#: What a host of version 1 can do, unless its ``describe`` says otherwise.
FEATURES = frozenset({"host_calls", "host_asks", "progress", "partial", "log"})

_decode = json.JSONDecoder().raw_decode
#: The id in the beginning of a message that cannot be read whole.
_ID = re.compile(rb'"id"\s*:\s*("[\w/.-]*"|-?[0-9]{1,20})\s*[,}]')


class Session(Link):
    """A plugin in conversation with its host, over a descriptor to read from and one to write to.

    ``lost`` is called when nobody reads any more what is written.
    """

    def __init__(self, plugin: "Plugin", source: int, sink: int, lost: Callable[[], None]) -> None:
        self.manifest = plugin.manifest()
        self.features: FrozenSet[str] = FEATURES
        #: The calls in flight, by their ids.
        self.calls: Dict[str, Call] = {}
        self.lanes: "Lanes"
        self.life = Lifecycle(plugin.hooks, self)
        self.wire = Wire(source, sink, lost=lost, oversized=self._refuse_oversized)
        self.reading = Reading(self.wire, self.receive, self._host_gone)
        self._pending = Pending(self.wire, self.reading)
        self._operations: Dict[str, Operation] = {operation.name: operation for operation in plugin.operations}
        self._can_reload = plugin.hooks.reload is not None

    # What the host sends.

    def receive(self, line: bytes) -> None:
        """Takes one line in."""
        try:
            text = line.decode()
            message, end = _decode(text)
            method = message.get("method")
            if text[end:] != "\n" and text[end:].strip():
                raise ValueError("there is more on the line than one message")
        except (ValueError, RecursionError) as error:
            self._receive_odd(line, str(error))
            return
        except AttributeError:
            self._receive_odd(line, "expected an object")
            return
        if "id" not in message:
            if method == "cancel":
                self._cancel(message.get("params"))
        elif method == "call":
            self._call(message)
        elif method is None:
            self._pending.answered(message)
        else:
            self._request(message["id"], method, message.get("params"))

    def _receive_odd(self, line: bytes, why: str) -> None:
        """A line that is no plain message: blank, with blanks or a byte order mark before it, or none at all."""
        bare = line.strip(b" \t\r\n")
        if bare.startswith(b"\xef\xbb\xbf"):
            bare = bare[3:].lstrip(b" \t\r\n")
        if bare and len(bare) < len(line.rstrip(b"\n")):
            self.receive(bare)
        elif bare:
            remark(f"skipped a line from the host: {why}")
            self._fail_by_head(bare[:HEAD_MAX], f"the message cannot be read: {why}")

    def _refuse_oversized(self, head: bytes) -> None:
        why = f"a message of more than {FRAME_MAX:,} bytes cannot be read"
        remark(why)
        self._fail_by_head(head, why)

    def _fail_by_head(self, head: bytes, why: str) -> None:
        """Fails the request that an unreadable line was, or what waits for it as an answer."""
        match = _ID.search(head)
        if match is None:
            return
        request_id, error = json.loads(match.group(1)), coded(errors.INVALID_PARAMS, why)
        if b'"method"' in head:
            self._refuse(request_id, error)
        else:
            self._pending.answered({"id": request_id, "error": error.to_wire()})

    def _call(self, message: Dict[str, Any]) -> None:
        request_id = message["id"]
        try:
            params: Dict[str, Any] = message["params"]
            name = params["operation"]
            arguments, said = params.get("arguments", {}), params["context"]
            call_id = said["call_id"]
            operation = self._operations.get(name)
            if arguments.__class__ is not dict or call_id.__class__ is not str:
                raise TypeError
        except (KeyError, TypeError, AttributeError):
            why = "the params of call: expected operation, arguments, and a context with a call_id"
            self._refuse(request_id, coded(errors.INVALID_PARAMS, why))
            return
        if operation is None:
            known = ", ".join(self._operations) or "none"
            why = f"{self.manifest['name']} has no operation {name!r}; it has {known}"
            self._refuse(request_id, coded(errors.METHOD_NOT_FOUND, why))
            return
        call = self.calls[call_id] = Call(self, request_id, operation, arguments, said)
        self.lanes.submit(call)

    def _cancel(self, params: Any) -> None:
        call = self.calls.get(str(params.get("call_id"))) if isinstance(params, dict) else None
        if call is not None:
            call.cancel()

    def _request(self, request_id: Any, method: str, params: Any) -> None:
        params = params if isinstance(params, dict) else {}
        if method == "ping":
            self._answer(request_id, '"result":{}')
        elif method == "describe":
            self._describe(request_id, params)
        elif method in ("init", "shutdown") or (method == "reload" and self._can_reload):
            self.lanes.submit_hook(method, request_id, params)
        else:
            why = f"{self.manifest['name']} does not know the method {method!r}"
            self._refuse(request_id, coded(errors.METHOD_NOT_FOUND, why))

    def _describe(self, request_id: Any, params: Dict[str, Any]) -> None:
        # Somebody who asks by hand may offer nothing; the manifest says what is spoken here.
        protocol = params.get("protocol")
        protocol = protocol if isinstance(protocol, dict) else {}
        features, versions = protocol.get("features"), protocol.get("versions")
        self.features = frozenset(features) if isinstance(features, list) else FEATURES
        theirs = versions if isinstance(versions, list) else VERSIONS
        if any(version in VERSIONS for version in theirs):
            self._answer(request_id, f'"result":{dumps(self.manifest)}')
            return
        advice = "upgrade plugd" if all(version < min(VERSIONS) for version in theirs) else "upgrade the plugin"
        why = (
            f"the plugin speaks protocol version {', '.join(map(str, VERSIONS))} "
            f"and the host speaks {', '.join(map(str, theirs))}: {advice}"
        )
        self._refuse(request_id, coded(errors.INVALID_PARAMS, why))

    def _host_gone(self) -> None:
        self._pending.host_gone()

    # What it asks for, run and answered.

    def perform(self, call: Call) -> None:
        """Runs a call whose handler is a plain ``def``, and answers it."""
        current.set(call)
        try:
            member = answer.result(call.operation.handler(**self._arguments(call, Context)))
        except BaseException as error:
            member = answer.refusal(answer.failure(call, error))
        self._end(call, member)

    async def perform_async(self, call: Call) -> None:
        """As :meth:`perform`, where it is an ``async def``."""
        from asyncio import CancelledError

        current.set(call)
        try:
            outcome = await call.operation.handler(**self._arguments(call, AsyncContext))
            check_awaited(call)
            member = answer.result(outcome)
        except CancelledError:
            member = answer.refusal(Cancelled())
        except BaseException as error:
            member = answer.refusal(answer.failure(call, error))
        for asked in call.unawaited:
            asked.close()
        self._end(call, member)

    def run_hook(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """Runs ``init``, ``reload`` or ``shutdown``, and answers it."""
        self._answer(request_id, self.life.run(name, params))

    async def run_hook_async(self, name: str, request_id: Any, params: Dict[str, Any]) -> None:
        """As :meth:`run_hook`, in an event loop."""
        self._answer(request_id, await self.life.run_async(name, params))

    def _arguments(self, call: Call, context: Callable[[Call], CallContext]) -> Dict[str, Any]:
        """What a handler is called with, where the call may still run."""
        if not self.life.is_open:
            raise self.life.closed()
        if call.is_cancelled:
            raise Cancelled()
        operation = call.operation
        arguments = call.arguments if operation.read is None else operation.read(call.arguments)
        if operation.context_keyword is not None:
            arguments[operation.context_keyword] = context(call)
        return arguments

    def _end(self, call: Call, member: str) -> None:
        # First: once it is answered it may come again, as another attempt under the same id.
        self.calls.pop(call.call_id, None)
        try:
            self._answer(call.request_id, member)
        except FrameTooLarge as error:
            why = f"the result cannot be sent: {error}"
            self._refuse(call.request_id, Error("too_large", why, hint="ask for less, or for a part of it"))

    def _answer(self, request_id: Any, member: str) -> None:
        head = request_id if request_id.__class__ is int else dumps(request_id)
        self.wire.send(f'{{"jsonrpc":"2.0","id":{head},{member}}}')

    def _refuse(self, request_id: Any, error: Error) -> None:
        self._answer(request_id, answer.refusal(error))

    # What contexts say and ask.

    def log(self, level: str, message: str, call: Optional[Call] = None) -> None:
        """Sends a line for the log, unless the host wants none of its level."""
        if not self.life.wants(level):
            return
        if "log" not in self.features:
            remark(message)
            return
        about = {} if call is None else {"call_id": call.call_id, "trace_id": call.trace_id}
        params = {"level": level, "message": message, **about}
        self.notify("log", {name: value for name, value in params.items() if value is not None})

    def notify(self, feature: str, params: Mapping[str, Any]) -> None:
        """Sends a notification that the host takes."""
        if feature in self.features:
            self.wire.send(dumps({"jsonrpc": "2.0", "method": feature, "params": params}))

    def request(self, call: Call, request: HostRequest[Any]) -> Any:
        """Asks the host for something and waits for its answer."""
        request.check_offered(self.features)
        return self._pending.ask(call, request)

    async def request_async(self, call: Call, request: HostRequest[Any]) -> Any:
        """As :meth:`request`, without blocking the event loop."""
        request.check_offered(self.features)
        return await self._pending.ask_async(call, request)

    def look(self) -> None:
        """Takes in what the host has sent, unless another thread reads anyway."""
        self.reading.look()

    def wait_cancelled(self, call: Call, timeout: Optional[float]) -> bool:
        """Waits until a call is cancelled, at most for so many seconds; whether it is."""
        wake = threading.Event()
        until = None if timeout is None else time.monotonic() + timeout
        call.on_cancel.append(wake.set)
        try:
            self.reading.wait(wake, lambda: not call.is_cancelled, until)
        finally:
            call.on_cancel.remove(wake.set)
        return call.is_cancelled

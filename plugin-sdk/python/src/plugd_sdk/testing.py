"""A host in memory, for an author's tests of a whole plugin.

The plugin runs in a thread of the test and speaks the real protocol over a pipe; only the process is
missing, and most of the host's checks: arguments arrive as the test gives them, but for keys that nobody
declared, which are refused as a host does::

    from plugd_sdk.testing import Host
    import greet

    with Host(greet) as host:
        reply = host.call("hello", name="Ada")
    assert reply.data == "hello Ada"
"""

from __future__ import annotations

import difflib
import json
import logging
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, Union

from .answer import complain
from .call import serving
from .encode import dumps, to_bytes
from .errors import Error, coded
from .lanes import lanes_for
from .logs import LogHandler
from .plugin import Plugin, plugin_of
from .reply import HostReply, Reply
from .session import FEATURES, VERSIONS, Session

#: A test that waits longer than this has found a plugin that does not answer, in seconds.
PATIENCE = 60.0
#: How long a plugin may take to leave, once its host has.
GOODBYE = 5.0
#: The codes of a failed ``host/call`` and ``host/ask``.
_CALL_FAILED, _ASK_FAILED = 3, 4
#: What a host says of arguments that do not fit, with the name ``invalid_arguments``.
_INVALID_ARGUMENTS = 2001
#: Keywords by which a schema may take keys that stand elsewhere than under its ``properties``.
_TAKES_MORE = ("patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")

#: What plays another plugin: its data, a :class:`Reply`, or what makes either of the arguments.
OtherPlugin = Union[Any, Callable[[Dict[str, Any]], Any]]
#: What plays the person behind the calls: answers by the names of the questions, or what gives one for a
#: name and a prompt.
Person = Union[Mapping[str, Any], Callable[[str, str], Any]]


@dataclass
class Progress:
    """How far a call said it was."""

    done: float
    total: Optional[float] = None
    message: Optional[str] = None


@dataclass
class TestReply:
    """How a call went."""

    #: Not a test, whatever pytest makes of its name.
    __test__ = False

    #: The result, once there is one: ``data``, ``summary``, ``next_actions``.
    result: Optional[Dict[str, Any]] = None
    #: The plugin's failure, where it failed.
    failure: Optional[Error] = None
    #: What was logged under its id: level and line.
    logs: List[Tuple[str, str]] = field(default_factory=list)
    progress: List[Progress] = field(default_factory=list)
    partials: List[Any] = field(default_factory=list)

    @property
    def data(self) -> Any:
        """The data of a call that went well; an ``AssertionError`` where it did not."""
        assert self.result is not None, f"expected data, got {self.failure!r}{self._errors()}"
        return self.result["data"]

    @property
    def error(self) -> Error:
        """The failure of a call that did not go well; an ``AssertionError`` where it did."""
        assert self.failure is not None, f"expected a failure, got {self.result!r}"
        return self.failure

    @property
    def summary(self) -> Optional[str]:
        """Its one line."""
        return (self.result or {}).get("summary")

    @property
    def next_actions(self) -> List[Dict[str, Any]]:
        """What it offers to do next."""
        return list((self.result or {}).get("next_actions", []))

    def _errors(self) -> str:
        """What was logged of failures, such as the stack of an exception."""
        return "".join(f"\n{line}" for level, line in self.logs if level == "error")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.result is not None or self.failure is not None


class RunningCall:
    """A call under way."""

    def __init__(self, host: "Host", request_id: int) -> None:
        self._host = host
        self._id = request_id

    def cancel(self) -> None:
        """Tells the plugin to stop."""
        self._host._notify("cancel", {"call_id": str(self._id)})

    def wait(self) -> TestReply:
        """Waits for the call's end."""
        return self._host._wait(self._id, lambda reply: reply.is_over)

    def wait_for_progress(self, done: float) -> None:
        """Waits until the call said it was as far as ``done``."""

        def is_there(reply: TestReply) -> bool:
            return any(progress.done >= done for progress in reply.progress)

        reply = self._host._wait(self._id, lambda reply: is_there(reply) or reply.is_over)
        assert is_there(reply), f"the call ended before it was that far: {reply!r}"


class Host:
    """Runs a plugin within a test and calls it; use it in a ``with``.

    ``plugin`` is a :class:`Plugin`, or the module that declares one. It is initialised with ``config`` at
    the first call. ``calls`` plays other plugins, by the operations that are called there (``plugin.operation``), and
    ``answers`` the person behind the calls; without it there is nobody to ask. Each call has
    ``deadline`` seconds. ``variables``, where given, are those of the session.
    """

    def __init__(
        self,
        plugin: Union[Plugin, ModuleType],
        *,
        config: Optional[Mapping[str, Any]] = None,
        data_dir: Union[None, str, Path] = None,
        deadline: float = 30.0,
        calls: Optional[Mapping[str, OtherPlugin]] = None,
        answers: Optional[Person] = None,
        variables: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.plugin = plugin_of(plugin) if isinstance(plugin, ModuleType) else plugin
        self.variables = variables
        self._config = dict(config or {})
        self._folder = tempfile.TemporaryDirectory() if data_dir is None else None
        self._data_dir = str(data_dir or self._folder.name)  # type: ignore[union-attr]
        self._deadline = deadline
        self._calls = dict(calls or {})
        self._answers = answers
        self._started: Optional[TestReply] = None
        self._replies: Dict[int, TestReply] = {}
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        source, self._to_plugin = os.pipe()
        from_plugin, sink = os.pipe()
        self._session = Session(self.plugin, source, sink, lost=lambda: None)
        self._session.lanes = lanes_for(self._session, self.plugin.concurrency, is_async=self.plugin.is_async)
        self._logging = _Logging(self._session)
        self._serving = threading.Thread(target=self._serve, daemon=True)
        threading.Thread(target=self._listen, args=(from_plugin,), daemon=True).start()
        self._serving.start()

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def start(self) -> None:
        """Describes and initialises the plugin, once.

        :raises Error: why it did not start.
        """
        if self._started is None:
            self.manifest()
            params = {"config": self._config, "data_dir": self._data_dir, "locale": "en", "log_level": "trace"}
            self._started = self._request("init", params)
        if self._started.failure is not None:
            raise self._started.failure

    def manifest(self) -> Dict[str, Any]:
        """What the plugin declares, as it describes itself."""
        features = [*FEATURES, *(["host_vars"] if self.variables is not None else [])]
        offer = {"versions": list(VERSIONS), "features": features}
        reply = self._request("describe", {"protocol": offer, "host": {"name": "test", "version": "0"}})
        assert reply.result is not None, f"describe failed: {reply.failure}"
        return reply.result

    def call(self, operation: str, arguments: Optional[Mapping[str, Any]] = None, /, **named: Any) -> TestReply:
        """Calls an operation and waits for its end."""
        return self.begin(operation, arguments, **named).wait()

    def begin(self, operation: str, arguments: Optional[Mapping[str, Any]] = None, /, **named: Any) -> RunningCall:
        """Calls an operation without waiting."""
        self.start()
        arguments = {**(arguments or {}), **named}
        request_id = self._next_id()
        unknown = self._undeclared(operation, arguments)
        if unknown is not None:
            self._replies[request_id].failure = unknown
            return RunningCall(self, request_id)
        context = {"call_id": str(request_id), "deadline_ms": int(self._deadline * 1000), "caller": "test"}
        params = {"operation": operation, "arguments": arguments, "context": context}
        self._send({"id": request_id, "method": "call", "params": params})
        return RunningCall(self, request_id)

    def reload(self, config: Mapping[str, Any]) -> None:
        """Gives the plugin a changed configuration.

        :raises Error: what its ``reload`` says.
        """
        self.start()
        self._done(self._request("reload", {"config": dict(config)}))

    def shutdown(self) -> None:
        """Tells the plugin to shut down and waits until it has.

        :raises Error: what its ``shutdown`` says.
        """
        self._done(self._request("shutdown", {"reason": "stop", "grace_ms": 5000}))

    def close(self) -> None:
        """Hangs up, as a host does that dies: the plugin's reading ends."""
        if self._to_plugin < 0:
            return
        with self._sending:
            os.close(self._to_plugin)
            self._to_plugin = -1
        self._serving.join(GOODBYE)
        self._logging.undo()
        if self._folder is not None:
            self._folder.cleanup()

    # The plugin's side of the pipes.

    def _serve(self) -> None:
        serving.set(self._session)
        try:
            self._session.lanes.run()
        finally:
            self._session.wire.close()

    # The host's.

    def _request(self, method: str, params: Mapping[str, Any]) -> TestReply:
        request_id = self._next_id()
        self._send({"id": request_id, "method": method, "params": params})
        return self._wait(request_id, lambda reply: reply.is_over)

    def _done(self, reply: TestReply) -> None:
        if reply.failure is not None:
            raise reply.failure

    def _undeclared(self, operation: str, arguments: Mapping[str, Any]) -> Optional[Error]:
        """The host's failure of a call with keys that its operation does not declare."""
        schemas = [it["input_schema"] for it in self._session.manifest["operations"] if it["name"] == operation]
        known = _only_keys(schemas[0]) if schemas else None
        unknown = [] if known is None else [key for key in arguments if key not in known]
        if known is None or not unknown:
            return None
        expected = f"expected only the keys {', '.join(known)}" if known else "expected no arguments"
        nearest = difflib.get_close_matches(unknown[0], known, 1)
        meant = f"; did you mean {nearest[0]}?" if nearest else ""
        error = Error("invalid_arguments", f"the arguments do not fit {operation}: {unknown[0]}: {expected}{meant}")
        error.code = _INVALID_ARGUMENTS
        return error

    def _next_id(self) -> int:
        assert self._to_plugin >= 0, "this host is closed"
        with self._changed:
            request_id = len(self._replies) + 1
            self._replies[request_id] = TestReply()
        return request_id

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        data = to_bytes(dumps({"jsonrpc": "2.0", **message}) + "\n")
        with self._sending:
            while data and self._to_plugin >= 0:
                data = data[os.write(self._to_plugin, data) :]

    def _wait(self, request_id: int, wanted: Callable[[TestReply], bool]) -> TestReply:
        with self._changed:
            reply = self._replies[request_id]
            in_time = self._changed.wait_for(lambda: wanted(reply), PATIENCE)
        assert in_time, f"the plugin does not answer; so far: {reply!r}"
        return reply

    def _listen(self, from_plugin: int) -> None:
        with os.fdopen(from_plugin, "rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "method" not in message:
                    self._take_answer(message)
                elif "id" in message:
                    # Beside the listening: what plays another plugin may itself wait.
                    threading.Thread(target=self._serve_request, args=(message,), daemon=True).start()
                else:
                    self._take_notification(message["method"], message["params"])

    def _take_answer(self, message: Dict[str, Any]) -> None:
        with self._changed:
            reply = self._replies[message["id"]]
            if "error" in message:
                reply.failure = Error.from_wire(message["error"])
            else:
                reply.result = message["result"]
            self._changed.notify_all()

    def _take_notification(self, method: str, params: Dict[str, Any]) -> None:
        call_id = params.get("call_id")
        with self._changed:
            reply = self._replies.get(int(call_id)) if call_id is not None else None
            if reply is None:
                # Of a hook, whose stack nobody would see otherwise.
                if method == "log" and params["level"] == "error":
                    complain(params["message"])
                return
            if method == "log":
                reply.logs.append((params["level"], params["message"]))
            elif method == "progress":
                reply.progress.append(Progress(params["done"], params.get("total"), params.get("message")))
            elif method == "partial":
                reply.partials.append(params["data"])
            self._changed.notify_all()

    def _serve_request(self, message: Dict[str, Any]) -> None:
        method, params = message["method"], message["params"]
        serve = {"host/call": self._other_plugin, "host/ask": self._person, "host/vars": self._variables}.get(method)
        try:
            if serve is None:
                raise coded(-32601, f"this host does not know {method}")
            answer: Dict[str, Any] = {"result": serve(params)}
        except Error as error:
            answer = {"error": error.to_wire()}
        self._send({"id": message["id"], **answer})

    def _other_plugin(self, params: Dict[str, Any]) -> Dict[str, Any]:
        name = params["operation"]
        if name not in self._calls:
            raise coded(_CALL_FAILED, f"this test plays no {name}: see Host(calls=…)")
        played = self._calls[name]
        try:
            reply = played(params["arguments"]) if callable(played) else played
        except Error as error:
            error.code = _CALL_FAILED
            raise
        summary = reply.summary if isinstance(reply, (Reply, HostReply)) else None
        data = reply.data if isinstance(reply, (Reply, HostReply)) else reply
        return {"data": data, "call_id": "inner", **({"summary": summary} if summary else {})}

    def _person(self, params: Dict[str, Any]) -> Dict[str, Any]:
        answers = {}
        for question in params["questions"]:
            name, person = question["name"], self._answers
            try:
                if callable(person):
                    answers[name] = person(name, question["prompt"])
                elif person is not None and name in person:
                    answers[name] = person[name]
                else:
                    raise Error("nobody_to_ask", f"this test plays nobody to ask for {name}: see Host(answers=…)")
            except Error as error:
                error.code = _ASK_FAILED
                raise
        return {"answers": answers}

    def _variables(self, params: Dict[str, Any]) -> Dict[str, Any]:
        variables = self.variables if self.variables is not None else {}
        if "get" in params:
            return {"vars": {name: variables[name] for name in params["get"] if name in variables}}
        if "set" in params:
            variables.update(params["set"])
            return {}
        change = params["compare_and_set"]
        swapped = variables.get(change["name"]) == change["expected"]
        if swapped:
            variables[change["name"]] = change["value"]
        return {"swapped": swapped}


def _only_keys(schema: Mapping[str, Any]) -> Optional[List[str]]:
    """The keys that a host takes; ``None`` where it takes any, or that is not to be read off easily."""
    is_closed = schema.get("additionalProperties") is False
    lists = bool(schema.get("properties")) and "additionalProperties" not in schema
    if not (is_closed or lists) or any(keyword in schema for keyword in _TAKES_MORE):
        return None
    return list(schema.get("properties", {}))


class _Logging:
    """Has ``logging`` reach a session, until it is undone."""

    def __init__(self, session: Session) -> None:
        self._handler = LogHandler(session, only_own=True)
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self._handler)
        root.setLevel(1)

    def undo(self) -> None:
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._level)

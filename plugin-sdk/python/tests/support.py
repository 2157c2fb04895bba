"""What the tests share: plugins as processes, and the golden sessions."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
GOLDEN = HERE.parents[2] / "protocol" / "wire" / "sdk"

if str(SOURCES) not in sys.path:
    sys.path.insert(0, str(SOURCES))

#: How plugins are run: without what else is installed, which they do not need.
PYTHON = [sys.executable, "-S"]
#: Nothing that a test waits for takes so long, not even on a loaded machine, in seconds.
PATIENCE = 30.0


@contextlib.contextmanager
def quietly() -> Iterator[io.StringIO]:
    """What is printed meanwhile, to either stream."""
    with contextlib.redirect_stderr(io.StringIO()) as text, contextlib.redirect_stdout(text):
        yield text


class Lines:
    """Reads lines from a descriptor, each within a deadline."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self) -> Optional[str]:
        """The next line; ``None`` at the end."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise AssertionError("no line has come")
            chunk = os.read(self._descriptor, 1 << 20)
            if not chunk:
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()


class Process:
    """A plugin as a process; killed where a test ends early."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self._stderr = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            [*PYTHON, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self.child.stdin is not None and self.child.stdout is not None
        self._lines = Lines(self.child.stdout.fileno())

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *raised: object) -> None:
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self._stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def send(self, *messages: Any) -> None:
        """Writes messages, each on its line, all at once; text and bytes as they are."""
        data = b"".join(_line(message) for message in messages)
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def receive(self) -> Any:
        """The next message."""
        line = self._lines.next()
        if line is None:
            raise AssertionError(f"the plugin is gone: {self.stderr()}")
        return json.loads(line)

    def call(self, operation: str, request_id: Any = 1, **arguments: Any) -> Any:
        """Calls an operation, and gives the next message."""
        self.send(call(operation, request_id, **arguments))
        return self.receive()

    def close(self) -> None:
        """Closes its stdin."""
        self.child.stdin.close()

    def exit(self) -> int:
        """Waits for its end; its status."""
        return self.child.wait(PATIENCE)

    def ended(self) -> bool:
        """Whether its stdout has ended."""
        return self._lines.next() is None

    def stderr(self) -> str:
        """What it has written there so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode()


class InMemory:
    """The same conversation with a plugin in a thread."""

    def __init__(self, plugin: Any) -> None:
        from plugd_sdk import testing

        # The plugin's ends of the pipes are the host's; its own ends are ours.
        self.host = testing.Host.__new__(testing.Host)
        source, self._to_plugin = os.pipe()
        self._from_plugin, sink = os.pipe()
        session = testing.Session(plugin, source, sink, lost=lambda: None)
        session.lanes = testing.lanes_for(session, plugin.concurrency, is_async=plugin.is_async)
        self._logging = testing._Logging(session)
        self.host._session = session
        import threading

        self._thread = threading.Thread(target=self.host._serve, daemon=True)
        self._thread.start()
        self._lines = Lines(self._from_plugin)

    def __enter__(self) -> "InMemory":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
        self._thread.join(PATIENCE)
        self._logging.undo()
        os.close(self._from_plugin)

    def send(self, *messages: Any) -> None:
        os.write(self._to_plugin, b"".join(_line(message) for message in messages))

    def receive(self) -> Any:
        line = self._lines.next()
        assert line is not None, "the plugin is gone"
        return json.loads(line)

    def close(self) -> None:
        if self._to_plugin >= 0:
            os.close(self._to_plugin)
            self._to_plugin = -1

    def exit(self) -> int:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the plugin goes on"
        return 0


def call(operation: str, request_id: Any = 1, /, **arguments: Any) -> Dict[str, Any]:
    """A request to run an operation."""
    context = {"call_id": f"c-{request_id}", "deadline_ms": 30000}
    params = {"operation": operation, "arguments": arguments, "context": context}
    return {"jsonrpc": "2.0", "id": request_id, "method": "call", "params": params}


def request(method: str, request_id: Any = 1, /, **params: Any) -> Dict[str, Any]:
    """Any request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, /, **params: Any) -> Dict[str, Any]:
    """Any notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def program(folder: str, text: str, name: str = "rough.py") -> Path:
    """Writes a program."""
    path = Path(folder) / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def _line(message: Any) -> bytes:
    if isinstance(message, bytes):
        return message
    return (message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)).encode() + b"\n"


def play(session: Path, partner: Any) -> None:
    """Plays a golden session with a plugin."""
    meanings: Dict[str, Any] = {}
    for number, line in enumerate(session.read_text(encoding="utf-8").splitlines(), 1):
        step = json.loads(line)
        place = f"{session.name}:{number}"
        if "send" in step:
            partner.send(_said(step["send"], meanings))
        elif "expect" in step:
            _expect(step["expect"], partner.receive(), meanings, place)
        elif "expect_all" in step:
            came = [partner.receive() for _ in step["expect_all"]]
            for expected in step["expect_all"]:
                came.remove(next(message for message in came if _fits(expected, message, dict(meanings))))
        elif "close" in step:
            partner.close()
        else:
            assert partner.exit() == step["exit"], place


def _said(message: Any, meanings: Dict[str, Any]) -> Any:
    if isinstance(message, dict):
        return {key: _said(value, meanings) for key, value in message.items()}
    return meanings.get(message, message) if isinstance(message, str) else message


def _expect(expected: Any, came: Any, meanings: Dict[str, Any], place: str) -> None:
    assert _fits(expected, came, meanings), f"{place}: expected {json.dumps(expected)}, got {json.dumps(came)}"


def _fits(expected: Any, came: Any, meanings: Dict[str, Any]) -> bool:
    if isinstance(expected, str) and re.fullmatch(r"\$\w+", expected):
        meanings[expected] = came
        return True
    if expected == "*":
        return True
    if isinstance(expected, dict):
        return (
            isinstance(came, dict)
            and expected.keys() == came.keys()
            and all(_fits(expected[key], came[key], meanings) for key in expected)
        )
    if isinstance(expected, list):
        return (
            isinstance(came, list)
            and len(expected) == len(came)
            and all(_fits(one, other, meanings) for one, other in zip(expected, came))
        )
    return type(expected) is type(came) and expected == came or (isinstance(expected, float) and expected == came)

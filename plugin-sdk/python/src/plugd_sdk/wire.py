"""The two pipes to the host, as lines."""

from __future__ import annotations

import os
import select
import threading
from typing import Callable, List, Optional

from .encode import to_bytes

#: The longest line that either side takes, its line end not counted, in bytes.
FRAME_MAX = 16 * 1024 * 1024
#: As much of a line that is too long is kept: its ``id`` stands there.
HEAD_MAX = 4096
#: Bytes asked for in one read: as much as a pipe holds.
READ_SIZE = 64 * 1024


class FrameTooLarge(ValueError):
    """A message is longer than the host takes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"it is {size:,} bytes long, and a message has at most {FRAME_MAX:,}")


class Wire:
    """Reads and writes lines; whoever reads must be alone in that, any thread may write.

    ``lost`` is called when nobody reads what is written any more, ``oversized`` with the beginning of a
    line that was too long to be kept.
    """

    def __init__(self, source: int, sink: int, *, lost: Callable[[], None], oversized: Callable[[bytes], None]) -> None:
        self._source = source
        self._sink = sink
        self._lost = lost
        self._oversized = oversized
        self._is_lost = False
        #: What has come of a line whose end has not.
        self._parts: List[bytes] = []
        self._length = 0
        # Re-entrant, so that a signal's handler may log while its thread writes.
        self._writing = threading.RLock()
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        #: Whether the host has closed its end.
        self.ended = False

    def fileno(self) -> int:
        """The descriptor that is read from."""
        return self._source

    def has_input(self, timeout: Optional[float] = 0) -> bool:
        """Whether a read would not block; waits so many seconds for it."""
        return bool(self._poll.poll(None if timeout is None else max(0.0, timeout) * 1000))

    def read(self) -> List[bytes]:
        """Waits for input, and gives the lines that are whole with it; maybe none."""
        chunk = os.read(self._source, READ_SIZE)
        if not self._length and chunk.find(b"\n") == len(chunk) - 1 and chunk:
            return [chunk]
        if chunk and b"\n" not in chunk:
            self._keep(chunk)
            return []
        # A last line counts without its end.
        self.ended = not chunk
        lines = (b"".join(self._parts) + (chunk or b"\n")).split(b"\n")
        rest = lines.pop()
        if self._length + chunk.find(b"\n") > FRAME_MAX:
            self._oversized(lines.pop(0)[:HEAD_MAX])
        self._parts, self._length = ([rest], len(rest)) if rest else ([], 0)
        return lines

    def send(self, text: str) -> None:
        """Writes one message whole.

        :raises FrameTooLarge: where the host would not take it.
        """
        data = to_bytes(text + "\n")
        size = len(data)
        if size > FRAME_MAX + 1:
            raise FrameTooLarge(size - 1)
        with self._writing:
            if self._is_lost:
                return
            try:
                written = os.write(self._sink, data)
                while written < size:
                    written += os.write(self._sink, memoryview(data)[written:])
            except OSError:
                # Nobody reads a broken pipe again.
                self._is_lost = True
        if self._is_lost:
            self._lost()

    def close(self) -> None:
        """Closes both descriptors; what is written afterwards is lost."""
        with self._writing:
            self._is_lost = True
            os.close(self._source)
            os.close(self._sink)

    def _keep(self, chunk: bytes) -> None:
        self._length += len(chunk)
        if self._length <= FRAME_MAX:
            self._parts.append(chunk)
        elif len(self._parts) > 1:
            self._parts = [b"".join(self._parts)[:HEAD_MAX]]

"""What ``logging`` says, sent to the plugin's log with its level and its call."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from .call import current, serving
from .context import LOG_LINE_MAX

if TYPE_CHECKING:
    from .session import Session

#: What the host's levels are called in ``logging``.
_LEVELS = {"trace": 1, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class LogHandler(logging.Handler):
    """Sends the records of the root logger to the host.

    With ``only_own`` only those of its own session: a test may have several.
    """

    def __init__(self, session: "Session", *, only_own: bool = False) -> None:
        super().__init__()
        self._session = session
        self._only_own = only_own

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a record; one that cannot be formatted is told of on stderr."""
        try:
            session, call = self._session, current.get()
            if call is None or call.link is not session:
                if self._only_own and serving.get() is not session:
                    return
                # A thread that a handler has started: with one call in flight it works for that one.
                calls = list(session.calls.values())
                call = calls[0] if len(calls) == 1 else None
            session.log(_level(record.levelno), self.format(record)[:LOG_LINE_MAX], call)
        except Exception:
            self.handleError(record)


def install(session: "Session") -> None:
    """Has the root logger write to the host, and no longer to stderr, which leads there as well.

    Where nobody has chosen a level yet, it becomes the host's.
    """
    root = logging.getLogger()
    for other in root.handlers[:]:
        if type(other) is logging.StreamHandler and other.stream in (sys.stderr, sys.stdout):
            root.removeHandler(other)
    root.addHandler(LogHandler(session))
    if root.level == logging.WARNING:
        root.setLevel(_LEVELS[session.life.log_level])
        session.life.on_log_level = lambda level: root.setLevel(_LEVELS[level])


def _level(number: int) -> str:
    """The host's name of a level of ``logging``."""
    reached = [name for name, least in _LEVELS.items() if number >= least]
    return reached[-1] if reached else "trace"

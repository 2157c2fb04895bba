"""What a plugin has opened: its ``init``, ``reload`` and ``shutdown``, as the host asks for them."""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import answer
from .context import InitContext
from .errors import Error
from .hooks import Hooks
from .link import LEVELS, Link


class Lifecycle:
    """Whether calls may run, and what they share."""

    def __init__(self, hooks: Hooks, link: Link) -> None:
        self._hooks = hooks
        self._link = link
        #: Whether the plugin has what its ``init`` opens, and has not released it.
        self.is_open = hooks.init is None
        #: Whether it was told to shut down.
        self.is_over = False
        #: The least level of the log that the host wants.
        self.log_level = "info"
        #: Told of that level once the host has said it.
        self.on_log_level: Callable[[str], None] = lambda level: None

    def wants(self, level: str) -> bool:
        """Whether the host wants lines of this level."""
        return LEVELS.get(level, LEVELS["info"]) >= LEVELS[self.log_level]

    def closed(self) -> Error:
        """Why no call can run while it is not open."""
        if self.is_over:
            return Error("shutting_down", "the plugin is shutting down", retryable=True)
        return Error("not_initialised", "the plugin has not been initialised: send init first")

    def run(self, name: str, params: Dict[str, Any]) -> str:
        """Runs a hook; gives the member of the answer."""
        offered, hook = self._offered(name, params), getattr(self._hooks, name)
        try:
            return self._done(name, None if hook is None else hook.run(offered))
        except BaseException as error:
            return answer.refusal(answer.hook_failure(self._link, name, error))

    async def run_async(self, name: str, params: Dict[str, Any]) -> str:
        """As :meth:`run`, in an event loop."""
        offered, hook = self._offered(name, params), getattr(self._hooks, name)
        try:
            return self._done(name, None if hook is None else await hook.run_async(offered))
        except BaseException as error:
            return answer.refusal(answer.hook_failure(self._link, name, error))

    def _offered(self, name: str, params: Dict[str, Any]) -> Dict[str, Any]:
        """What there is to hand to a hook."""
        if name == "shutdown":
            self.is_open, self.is_over = False, True
        offered = {"config": params.get("config", {}), "state": self._link.state}
        if name == "init":
            level = params.get("log_level")
            self.log_level = level if level in LEVELS else "info"
            self.on_log_level(self.log_level)
            data_dir, locale = params.get("data_dir", "."), params.get("locale", "en")
            offered["context"] = InitContext(self._link, data_dir, locale)
        return offered

    def _done(self, name: str, outcome: Any) -> str:
        if name == "init":
            self._link.state, self.is_open = outcome, True
        return '"result":{}'

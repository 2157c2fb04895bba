"""The way from a call to its host, as contexts see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, FrozenSet, Mapping, Optional

from .encode import dumps
from .errors import Error

if TYPE_CHECKING:
    from .call import Call
    from .host import HostRequest

#: The levels of the log, by rising weight.
LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "error": 4}


class Link:
    """A way that leads nowhere, for handlers that are called without a host: what is said is lost."""

    #: What the plugin's ``init`` gave.
    state: Any = None
    #: What the host can do.
    features: FrozenSet[str] = frozenset()

    def log(self, level: str, message: str, call: Optional["Call"] = None) -> None:
        """Writes a line to the plugin's log, under the call's id."""

    def notify(self, feature: str, params: Mapping[str, Any]) -> None:
        """Tells the host something, if it wants to know."""
        dumps(params)

    def request(self, call: "Call", request: "HostRequest[Any]") -> Any:
        """Asks the host for something and waits for its answer."""
        raise no_host(request.what)

    async def request_async(self, call: "Call", request: "HostRequest[Any]") -> Any:
        """As :meth:`request`, without blocking the event loop."""
        raise no_host(request.what)

    def look(self) -> None:
        """Takes in what the host has sent, if nobody else does."""

    def wait_cancelled(self, call: "Call", timeout: Optional[float]) -> bool:
        """Waits until a call is cancelled, at most for so many seconds; whether it is."""
        return call.is_cancelled


def no_host(what: str) -> Error:
    """The failure of a request that no host will ever answer."""
    return Error("no_host", f"there is no host to {what} through")

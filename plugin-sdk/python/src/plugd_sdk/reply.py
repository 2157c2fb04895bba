"""What a handler gives, and what another plugin gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Generic, Optional, Sequence, TypedDict, TypeVar

T = TypeVar("T")


class NextAction(TypedDict, total=False):
    """A call that may be worth making next; every member may be left out."""

    #: Which operation, as ``plugin.operation``.
    operation: str
    #: Why, in a few words.
    description: str
    #: With which arguments.
    arguments: Dict[str, Any]


@dataclass
class Reply(Generic[T]):
    """Data with one line about it, and what may be worth calling next (at most 20 actions).

    A handler that has no more to say returns the data as it is. Annotate it with the type of the
    data, ``-> Reply[Weather]``: that becomes the operation's output schema.
    """

    data: T
    summary: Optional[str] = None
    next_actions: Sequence[NextAction] = ()


@dataclass(frozen=True)
class HostReply:
    """What another plugin answered to :meth:`Context.call`."""

    #: Its data, as JSON has it.
    data: Any
    #: Its one line about it.
    summary: Optional[str] = None
    #: The id of that call.
    call_id: Optional[str] = None

    @staticmethod
    def from_wire(result: Any) -> "HostReply":
        """The answer as the host sent it."""
        if not isinstance(result, dict):
            return HostReply(result)
        return HostReply(result.get("data"), result.get("summary"), result.get("call_id"))

"""The hooks of a plugin: what it opens, takes up anew and releases."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import schema
from .annotations import Annotations, NoForm
from .context import InitContext
from .convert import reader
from .forms import Anything, Form, Read, inner

#: What each hook may take, in this order; it takes as many of them as it has parameters.
OFFERED = {"init": ("config", "context"), "reload": ("config", "state"), "shutdown": ("state",)}


class Hook:
    """A function of the author's, given what its parameters ask for."""

    def __init__(self, name: str, function: Callable[..., Any], namespace: Optional[Mapping[str, Any]] = None) -> None:
        self.name = name
        self.is_async = inspect.iscoroutinefunction(function)
        self.config_form: Form = Anything()
        self.read_config: Optional[Read] = None
        self._function = function
        self._namespace = namespace
        self._takes: Tuple[str, ...] = ()

    def prepare(self) -> List[str]:
        """Reads its parameters; gives everything that is wrong with them."""
        try:
            annotations = Annotations(getattr(self._function, "__module__", ""), self._namespace)
            hints = annotations.hints(self._function)
            takes: List[str] = []
            for name in inspect.signature(self._function).parameters:
                hint = hints.get(name, Any)
                what = "context" if hint is InitContext else self._next(takes)
                if what is None or what not in OFFERED[self.name]:
                    offered = " and ".join(OFFERED[self.name])
                    return [f"{self.name} takes {offered} at most, and there is no {name} to give it"]
                if what == "config":
                    self.config_form = annotations.form(hint)
                takes.append(what)
            self._takes = tuple(takes)
        except NoForm as error:
            return [f"{self.name}: {error}"]
        self.read_config = reader(self.config_form)
        return []

    def run(self, offered: Mapping[str, Any]) -> Any:
        """Runs it, where it is a plain ``def``."""
        return self._function(*self._arguments(offered))

    async def run_async(self, offered: Mapping[str, Any]) -> Any:
        """Runs it within the event loop, or beside it where it is a plain ``def``."""
        import asyncio

        arguments = self._arguments(offered)
        if self.is_async:
            return await self._function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self._function(*arguments))

    def _next(self, taken: List[str]) -> Optional[str]:
        left = [what for what in OFFERED[self.name] if what not in taken]
        return left[0] if left else None

    def _arguments(self, offered: Mapping[str, Any]) -> List[Any]:
        read = self.read_config
        given = dict(offered)
        if "config" in self._takes and read is not None:
            given["config"] = read(given["config"])
        return [given[what] for what in self._takes]


@dataclass
class Hooks:
    """The hooks that a plugin has, and the schema of its configuration."""

    init: Optional[Hook] = None
    reload: Optional[Hook] = None
    shutdown: Optional[Hook] = None
    #: A type, or a JSON Schema; ``None`` for the type that ``init`` takes.
    config: Union[None, type, Mapping[str, Any]] = None

    def all(self) -> List[Hook]:
        """Those there are."""
        return [hook for hook in (self.init, self.reload, self.shutdown) if hook is not None]

    def prepare(self) -> List[str]:
        """Reads their parameters; gives everything that is wrong with them."""
        faults = [fault for hook in self.all() for fault in hook.prepare()]
        if isinstance(self.config, type):
            try:
                form = Annotations(self.config.__module__).form(self.config)
            except NoForm as error:
                return [*faults, f"the configuration: {error}"]
            for hook in self.all():
                # One whose parameter says nothing of its own gets that type, too.
                if isinstance(hook.config_form, Anything):
                    hook.config_form, hook.read_config = form, reader(form)
        declared = self.config_schema()
        if declared is not None and declared.get("type", "object") != "object":
            faults.append("the configuration is an object: take a dataclass, a TypedDict or a dict")
        return faults

    def config_schema(self) -> Optional[Dict[str, Any]]:
        """The schema of the configuration; ``None`` where nothing is said of it."""
        if self.config is not None and not isinstance(self.config, type):
            return dict(self.config)
        for hook in (self.init, self.reload):
            if hook is not None and not isinstance(inner(hook.config_form), Anything):
                return schema.of_input(hook.config_form)
        if self.config is not None:
            return schema.of_input(Annotations(self.config.__module__).form(self.config))
        return None

"""A plugin: what it is, what it opens, and the operations it offers."""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, TypeVar, Union, overload

from .errors import DeclarationError
from .hooks import Hook, Hooks
from .names import keep_misspelt, kept_misspelt
from .operation import Operation

F = TypeVar("F", bound=Callable[..., Any])

#: The most calls that a plugin can take at once.
CONCURRENCY_MAX = 256

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_COMPARATOR = re.compile(r"(\^|~|=|>=?|<=?)?\s*(\d+|\*)(\.(\d+|\*)){0,2}([-+][0-9A-Za-z.+-]+)?\Z")
#: Names of files that say nothing; the folder's name is the plugin's then.
_PLAIN_FILES = {"plugin", "main", "__main__"}


class Plugin:
    """A whole plugin; declare it, then hand over to :meth:`serve`.

    Without a name it is called like the file that is run, or its folder where that is ``plugin.py`` or
    ``main.py``; without a version it has that file's ``__version__``, or 0.0.0; without a description,
    the file's docstring.

    ``concurrency`` calls run at once, each in a thread, or all in one event loop where they are
    ``async def``. ``stops_when_cancelled`` promises that handlers stop early. ``config_schema`` is the
    type of the configuration, or a JSON Schema, where the type that :meth:`init` takes does not say it.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        version: Optional[str] = None,
        *,
        description: Optional[str] = None,
        priority: Optional[int] = None,
        concurrency: int = 1,
        stops_when_cancelled: bool = False,
        config_schema: Union[None, type, Mapping[str, Any]] = None,
    ) -> None:
        self.name = name
        self.version = version
        self.description = description
        self.priority = priority
        self.concurrency = concurrency
        self.stops_when_cancelled = stops_when_cancelled
        self.operations: List[Operation] = []
        self.hooks = Hooks(config=config_schema)
        self._requires: Dict[str, Dict[str, Any]] = {}

    @overload
    def operation(self, handler: F, /) -> F: ...
    @overload
    def operation(
        self,
        /,
        *,
        name: Optional[str] = ...,
        title: Optional[str] = ...,
        description: Optional[str] = ...,
        when_to_use: Optional[str] = ...,
        when_not_to_use: Optional[str] = ...,
        examples: Sequence[str] = ...,
        category: Optional[str] = ...,
        audience: Optional[str] = ...,
        read_only: Optional[bool] = ...,
        destructive: Optional[bool] = ...,
        idempotent: Optional[bool] = ...,
        open_world: Optional[bool] = ...,
        long_running: bool = ...,
        cache_ttl: Optional[int] = ...,
        timeout_ms: Optional[int] = ...,
        stall_timeout_ms: Optional[int] = ...,
        confirm: Optional[str] = ...,
        scope: Optional[str] = ...,
        result_limit: Optional[int] = ...,
        input_schema: Optional[Mapping[str, Any]] = ...,
        output_schema: Optional[Mapping[str, Any]] = ...,
    ) -> Callable[[F], F]: ...

    def operation(self, handler: Optional[Callable[..., Any]] = None, /, **options: Any) -> Any:
        """Offers a function as an operation: ``@operation``, or ``@operation(read_only=True, …)``.

        The function stays what it is. Its name is the operation's, its docstring the description, its
        annotations the schemas; ``input_schema`` and ``output_schema`` stand in for those.

        - For people and models: ``title``, ``description``, ``when_to_use``, ``when_not_to_use``,
          ``examples`` (sentences of people who want this), ``category``, ``audience`` (``"plugins"``
          for a service that no model is told of).
        - Claims the host acts on: ``read_only``, ``destructive``, ``idempotent``, ``open_world``.
        - How it runs: ``timeout_ms``, ``stall_timeout_ms``, ``long_running`` (callers get a job),
          ``confirm`` (``"always"`` or ``"never"``), ``scope``, ``cache_ttl`` in seconds,
          ``result_limit`` in bytes.
        """
        # Where a function is declared within another, its annotations may name what only that one knows.
        caller = sys._getframe(1).f_locals

        def offer(function: F) -> F:
            namespace = caller if "<locals>" in getattr(function, "__qualname__", "") else None
            self.operations.append(Operation(function, options, namespace))
            return function

        return offer if handler is None else offer(handler)

    def init(self, function: F) -> F:
        """Opens, once at the start, what operations share: the decorated function's result is ``ctx.state``.

        It takes the configuration, and an :class:`InitContext` if it wants to. The configuration comes
        as the type of that parameter: a dataclass, a TypedDict or a pydantic model, whose schema the
        manifest then has. An error disables the plugin with its message as the reason.
        """
        self.hooks.init = Hook("init", function, _locals_of(function))
        return function

    def reload(self, function: F) -> F:
        """Takes up a changed configuration without a new process; it gets that, and the state.

        It runs while calls do. An error leaves the plugin as it was, as the function must.
        """
        self.hooks.reload = Hook("reload", function, _locals_of(function))
        return function

    def shutdown(self, function: F) -> F:
        """Runs once when the host says to shut down, and gets the state.

        Not when the host is gone: a plugin then leaves at once.
        """
        self.hooks.shutdown = Hook("shutdown", function, _locals_of(function))
        return function

    def requires(self, plugin: str, versions: str = "*", *, optional: bool = False) -> "Plugin":
        """Names a plugin that this one uses, the versions that will do (``">=1.0"``), and whether it
        can do without."""
        self._requires[plugin] = {"version": versions, "optional": optional}
        return self

    def manifest(self) -> Dict[str, Any]:
        """The manifest, as ``describe`` answers it.

        :raises DeclarationError: with everything that is wrong with the declaration.
        """
        faults = self._faults()
        if faults:
            raise DeclarationError(faults)
        main = _main_module()
        features = {
            "ping": True,
            "concurrency": self.concurrency if self.concurrency > 1 else None,
            "cancel": self.stops_when_cancelled or None,
            "reload": self.hooks.reload is not None or None,
        }
        manifest = {
            "protocol": 1,
            "name": self.name or name_of(main),
            "version": self.version or str(getattr(main, "__version__", "0.0.0")),
            "description": self.description or _description_of(main),
            "requires": {name: _plain_requirement(said) for name, said in self._requires.items()} or None,
            "priority": self.priority,
            "features": {feature: value for feature, value in features.items() if value is not None},
            "config_schema": self.hooks.config_schema(),
            "operations": [operation.manifest() for operation in self.operations],
        }
        return {member: value for member, value in manifest.items() if value is not None}

    def serve(self) -> NoReturn:
        """Speaks the protocol over standard input and output until the host is done; never returns.

        The last thing a program does. Before any handler runs, what prints is turned to stderr, so that
        it cannot disturb the protocol. Run by hand on a terminal it says what it is; ``--describe``
        prints the manifest. A declaration that is wrong ends it with status 125: starting again would
        not help.
        """
        from .process import run

        run(self)

    @property
    def is_async(self) -> bool:
        """Whether anything of it is an ``async def``."""
        return any(part.is_async for part in self.operations) or any(hook.is_async for hook in self.hooks.all())

    def _faults(self) -> List[str]:
        name = self.name or name_of(_main_module())
        faults = kept_misspelt(self)
        if not _NAME.match(name):
            faults.append(f"{name!r} is no name of a plugin: expected 1 to 64 letters, digits, _ or -")
        if not (isinstance(self.concurrency, int) and 1 <= self.concurrency <= CONCURRENCY_MAX):
            faults.append(f"concurrency is {self.concurrency!r}: expected 1 to {CONCURRENCY_MAX}")
        for plugin, said in self._requires.items():
            if not _NAME.match(plugin):
                faults.append(f"{plugin!r} is required, and is no name of a plugin")
            if not all(_COMPARATOR.match(part.strip()) for part in said["version"].split(",")):
                faults.append(f"{plugin} is required in {said['version']!r}: expected a range such as >=1.0")
        seen = set()
        for operation in self.operations:
            faults += operation.prepare()
            if operation.name in seen:
                faults.append(f"{operation.name} is declared twice")
            seen.add(operation.name)
        return faults + self.hooks.prepare()


keep_misspelt(Plugin)

#: The plugin that a file without one of its own declares with ``@operation`` and runs with ``serve()``.
default = Plugin()


def plugin_of(module: ModuleType) -> Plugin:
    """The plugin that a module declares: its :class:`Plugin`, or what its ``@operation`` offer."""
    for value in vars(module).values():
        if isinstance(value, Plugin) and value is not default:
            return value
    plugin = Plugin(name_of(module), str(getattr(module, "__version__", "0.0.0")), description=_description_of(module))
    plugin.operations = [
        operation for operation in default.operations if operation.handler.__module__ == module.__name__
    ]
    return plugin


def name_of(module: Optional[ModuleType]) -> str:
    """What a plugin is called whose program is this module."""
    path = os.path.realpath(getattr(module, "__file__", None) or "plugin")
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem in _PLAIN_FILES else stem


def _main_module() -> Optional[ModuleType]:
    return sys.modules.get("__main__")


def _description_of(module: Optional[ModuleType]) -> Optional[str]:
    doc = " ".join((getattr(module, "__doc__", None) or "").split("\n\n")[0].split())
    return doc or None


def _locals_of(function: Callable[..., Any]) -> Optional[Mapping[str, Any]]:
    return sys._getframe(2).f_locals if "<locals>" in getattr(function, "__qualname__", "") else None


def _plain_requirement(said: Mapping[str, Any]) -> Mapping[str, Any]:
    return said if said["optional"] else {"version": said["version"]}

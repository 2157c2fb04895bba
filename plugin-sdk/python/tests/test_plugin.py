"""A plugin declares what its author wrote, and says at once everything that is wrong with it."""

from __future__ import annotations

import datetime
import functools
import subprocess
import sys
import tempfile
import types
import unittest
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Dict, List, Literal, Optional, Sequence, TypedDict, Union

from support import PYTHON, SOURCES, program, quietly
from plugd_sdk import AsyncContext, Context, DeclarationError, Error, InitContext, Param, Plugin
from plugd_sdk.plugin import name_of, plugin_of
from plugd_sdk.testing import Host


@dataclass
class Config:
    """How it is set up.

    Attributes:
        word: The word.
    """

    word: str
    times: int = 1


class Options(TypedDict):
    word: str


def faults_of(plugin: Plugin) -> List[str]:
    try:
        plugin.manifest()
    except DeclarationError as error:
        return error.faults
    return []


class Declarations(unittest.TestCase):
    maxDiff = None

    def test_every_option_is_in_the_manifest(self) -> None:
        options: Dict[str, Any] = {
            "title": "T",
            "description": "D. D.",
            "when_to_use": "W",
            "when_not_to_use": "N",
            "examples": ["a", "b"],
            "category": "c",
            "audience": "plugins",
            "long_running": True,
            "cache_ttl": 60,
            "timeout_ms": 1000,
            "stall_timeout_ms": 500,
            "confirm": "always",
            "scope": "s",
            "result_limit": 256,
            "input_schema": {"type": "object"},
            "output_schema": {"type": "string"},
        }
        effects = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
        plugin = Plugin("all", "1.0.0", priority=3, concurrency=4, stops_when_cancelled=True, description="P")
        plugin.requires("other", ">=1.0, <2").requires("third", optional=True)
        plugin.operation(name="it", **options, **effects)(lambda: None)
        self.assertEqual(
            plugin.manifest(),
            {
                "protocol": 1,
                "name": "all",
                "version": "1.0.0",
                "description": "P",
                "requires": {"other": {"version": ">=1.0, <2"}, "third": {"version": "*", "optional": True}},
                "priority": 3,
                "features": {"ping": True, "concurrency": 4, "cancel": True},
                "operations": [{"name": "it", **options, "effects": effects}],
            },
        )

    def test_every_fault_is_told_at_once(self) -> None:
        plugin = Plugin("my plugin", concurrency=0)
        plugin.requires("weather", "soon")

        @plugin.operation(timeout_ms=0, audience="all", result_limit=1, examples="one", cache_ttl=5)
        def doIt(lock: object) -> None: ...

        @plugin.operation
        def same() -> None: ...

        plugin.operation(same)

        @plugin.operation(input_schema={"type": "array"})
        def listed(*numbers: int) -> None: ...

        @plugin.operation
        def contexts(one: Context, two: Context) -> bytes: ...

        @plugin.operation
        async def later(ctx: Context) -> None: ...

        @plugin.operation
        def sooner(ctx: AsyncContext, more: complex) -> None: ...

        class Counter:
            @plugin.operation
            def add(self, number: int) -> None: ...

        @plugin.init
        def init(config: List[int], ctx: InitContext, third: int) -> None: ...

        told = "\n".join(faults_of(plugin))
        for part in [
            "'my plugin' is no name of a plugin",
            "concurrency is 0",
            "weather is required in 'soon'",
            "doIt: this is no name",
            "did you mean do_it?",
            "doIt: timeout_ms is 0",
            "doIt: audience is 'all': expected one of callers, plugins",
            "doIt: result_limit is 1: expected a whole number from 256 up",
            "doIt: examples is a list of sentences",
            "doIt: cache_ttl counts only where the operation is read_only",
            "same is declared twice",
            "listed: its arguments are an object, and input_schema is of type 'array'",
            "listed: numbers: arguments come by name",
            "contexts: two is a second context",
            "contexts: what it returns: bytes has no form in JSON",
            "later: ctx is of the type Context, and an async def takes AsyncContext",
            "sooner: ctx is of the type AsyncContext, and a plain def takes Context",
            "sooner: more: complex has no form in JSON",
            "add: self has nobody to be",
            "init takes config and context at most, and there is no third to give it",
        ]:
            with self.subTest(part):
                self.assertIn(part, told)

    def test_misspelt_options_and_untyped_contexts_are_told_with_all_else(self) -> None:
        plugin = Plugin("test", concurency=4)  # type: ignore[call-arg]

        @plugin.operation(readonly=True, timeout=5, frobnicate=1)  # type: ignore[call-overload]
        def it(number: Annotated[int, Param(minimun=1)], ctx) -> None: ...  # type: ignore

        @plugin.operation
        async def later(context, other) -> None: ...  # type: ignore

        self.assertEqual(
            faults_of(plugin),
            [
                "Plugin has no option concurency; did you mean concurrency?",
                "it: @operation has no option readonly; did you mean read_only?",
                "it: @operation has no option timeout; did you mean timeout_ms?",
                "it: @operation has no option frobnicate",
                "it: number: Param has no option minimun; did you mean minimum?",
                "it: ctx has no type: annotate it, ctx: Context",
                "later: context has no type: annotate it, context: AsyncContext",
            ],
        )

    def test_a_default_is_of_its_type(self) -> None:
        @dataclass
        class Range:
            least: int = "one"  # type: ignore[assignment]
            most: bytes = b""
            step: int = 2

        plugin = Plugin("test")

        @plugin.operation
        def wrong(
            number: int = "three",  # type: ignore[assignment]
            words: List[str] = [1],  # type: ignore[list-item]
            way: Literal["up", "down"] = "left",  # type: ignore[assignment]
            within: Optional[Range] = None,
        ) -> None: ...

        @plugin.operation
        def right(
            number: float = 3,
            amount: Decimal = Decimal("1.5"),
            day: datetime.date = datetime.date(2030, 1, 31),
            place: Path = Path("/tmp"),
            way: Literal["up", "down"] = "up",
            words: Sequence[str] = (),
            either: Union[int, str] = "x",
            within: Config = Config("x"),
            nothing: int = None,  # type: ignore[assignment]
            anything: Any = object(),
        ) -> None: ...

        self.assertEqual(
            faults_of(plugin),
            [
                "wrong: number: its default is 'three': expected an integer",
                "wrong: words: its default is [1]: expected text",
                "wrong: way: its default is 'left': expected one of up, down",
                "wrong: within: least: its default is 'one': expected an integer; "
                "most: bytes has no form in JSON: use str, with base64 where it is no text",
            ],
        )

    def test_handlers_stay_functions(self) -> None:
        plugin = Plugin("test")

        @plugin.operation(read_only=True)
        def double(number: int) -> int:
            return number * 2

        self.assertEqual(double(21), 42)

    def test_a_wrapped_handler_keeps_its_signature(self) -> None:
        plugin = Plugin("test")

        def loudly(function: Any) -> Any:
            @functools.wraps(function)
            def wrapper(*positional: Any, **named: Any) -> Any:
                return function(*positional, **named).upper()

            return wrapper

        @plugin.operation
        @loudly
        def greet(name: str) -> str:
            """Greets. Loudly."""
            return name

        self.assertEqual(plugin.manifest()["operations"][0]["input_schema"]["required"], ["name"])
        with Host(plugin) as host:
            self.assertEqual(host.call("greet", name="Ada").data, "ADA")

    def test_methods_can_be_handlers(self) -> None:
        class Counter:
            total = 0

            def add(self, number: int) -> int:
                """Adds up. Remembers."""
                self.total += number
                return self.total

        plugin = Plugin("test")
        plugin.operation(Counter().add)
        with Host(plugin) as host:
            self.assertEqual([host.call("add", number=2).data, host.call("add", number=3).data], [2, 5])


class Configurations(unittest.TestCase):
    def test_the_schema_comes_from_what_init_takes(self) -> None:
        word = {"type": "string", "description": "The word."}
        expected = {
            "type": "object",
            "description": "How it is set up.",
            "properties": {"word": word, "times": {"type": "integer", "default": 1}},
            "required": ["word"],
        }
        plugin = Plugin("test")

        @plugin.init
        def init(config: Config) -> Config:
            return config

        self.assertEqual(plugin.manifest()["config_schema"], expected)
        other = Plugin("test", config_schema=Config)
        other.init(lambda config: config)
        self.assertEqual(other.manifest()["config_schema"], expected)
        with Host(other, config={"word": "hi"}) as host:
            host.start()
            self.assertEqual(host._session.state, Config("hi"))

    def test_it_may_be_given_or_left_open(self) -> None:
        given = Plugin("test", config_schema={"type": "object", "properties": {}})
        self.assertEqual(given.manifest()["config_schema"], {"type": "object", "properties": {}})
        plain = Plugin("test")

        @plain.init
        def init(config: Dict[str, Any]) -> None: ...

        self.assertEqual(plain.manifest()["config_schema"], {"type": "object"})
        typed = Plugin("test")

        @typed.reload
        def reload(config: Options) -> None: ...

        self.assertEqual(typed.manifest()["config_schema"]["required"], ["word"])
        self.assertNotIn("config_schema", Plugin("test").manifest())

    def test_hooks_take_as_much_as_they_want(self) -> None:
        plugin = Plugin("test")
        seen: List[Any] = []

        @plugin.init
        def init(ctx: InitContext) -> str:
            seen.append(ctx.data_dir.is_dir())
            return "state"

        @plugin.reload
        def reload(config: Options, state: str) -> None:
            seen.append((config, state))

        @plugin.shutdown
        def shutdown(state: str) -> None:
            seen.append(state)

        with Host(plugin) as host:
            host.reload({"word": "x"})
            host.shutdown()
        self.assertEqual(seen, [True, ({"word": "x"}, "state"), "state"])

    def test_a_failing_hook_says_why(self) -> None:
        plugin = Plugin("test")

        @plugin.init
        def init(config: Config) -> None:
            if config.word == "down":
                raise Error("no_database", "the database is down")
            raise RuntimeError("what is this")

        for config, code, message in [
            ({"word": "down"}, 1, "the database is down"),
            ({"word": "x"}, 2, "what is this"),
            ({}, -32602, "the configuration does not fit: word is missing"),
        ]:
            with Host(plugin, config=config) as host, quietly(), self.assertRaises(Error) as raised:
                host.start()
            self.assertEqual((raised.exception.code, raised.exception.message), (code, message))


class Modules(unittest.TestCase):
    """Row R8: a file with one decorated function is a whole plugin."""

    def test_a_file_is_a_plugin(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = program(
                folder,
                '''
                """Greets people.

                In any language.
                """
                from plugd_sdk import operation, serve

                __version__ = "2.1.0"

                @operation
                def hello(name: str) -> str:
                    """Greets somebody by name. Gives one line."""
                    return f"hello {name}"

                serve()
                ''',
                "greet.py",
            )
            described = subprocess.run(
                [*PYTHON, str(path), "--describe"],
                env={"PYTHONPATH": str(SOURCES)},
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
        import json

        manifest = json.loads(described)
        self.assertEqual(
            (manifest["name"], manifest["version"], manifest["description"]), ("greet", "2.1.0", "Greets people.")
        )
        self.assertEqual([operation["name"] for operation in manifest["operations"]], ["hello"])

    def test_a_module_is_a_plugin_for_tests(self) -> None:
        module = types.ModuleType("greetings")
        module.__file__ = "/somewhere/greetings.py"
        code = "from plugd_sdk import operation\n@operation\ndef hello(name: str) -> str:\n    return name\n"
        exec(code, vars(module))
        sys.modules["greetings"] = module
        try:
            with Host(module) as host:
                self.assertEqual(host.manifest()["name"], "greetings")
                self.assertEqual(host.call("hello", name="Ada").data, "Ada")
        finally:
            del sys.modules["greetings"]

    def test_a_modules_own_plugin_is_taken(self) -> None:
        module = types.ModuleType("own")
        exec("from plugd_sdk import Plugin, operation\nplugin = Plugin('mine')\n", vars(module))
        self.assertEqual(plugin_of(module).name, "mine")

    def test_plain_files_are_called_like_their_folder(self) -> None:
        for file, name in [("/a/greet/plugin.py", "greet"), ("/a/greet/main.py", "greet"), ("/a/b/greet.py", "greet")]:
            module = types.ModuleType("x")
            module.__file__ = file
            self.assertEqual(name_of(module), name)


if __name__ == "__main__":
    unittest.main()

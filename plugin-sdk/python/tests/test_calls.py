"""Calls of a plugin in memory: what handlers can do, and how they fail."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, Dict, List, Optional

import support  # noqa: F401
from plugd_sdk import AsyncContext, Cancelled, Context, Error, HostReply, Param, Plugin, Question, Reply
from plugd_sdk.testing import Host
from typing import Annotated


class Failures(unittest.TestCase):
    def test_an_error_says_what_its_author_wrote(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def fail() -> None:
            raise Error("not_there", "it is not there", hint="look elsewhere", retryable=True)

        with Host(plugin) as host:
            error = host.call("fail").error
        self.assertEqual(
            error.to_wire(),
            {
                "code": 1,
                "message": "it is not there",
                "data": {"name": "not_there", "hint": "look elsewhere", "retryable": True},
            },
        )

    def test_x3_any_other_exception_fails_that_call_only_and_its_stack_is_in_the_log(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def fail(how: str) -> None:
            if how == "key":
                {}["amount"]  # type: ignore[misc]
            if how == "exit":
                raise SystemExit(3)
            raise ValueError("the token is s3cr3t")

        with Host(plugin) as host, support.quietly() as text:
            for how, kind in [("key", "KeyError"), ("exit", "SystemExit"), ("else", "ValueError")]:
                reply = host.call("fail", how=how)
                self.assertEqual((reply.error.code, reply.error.name), (2, None))
                self.assertEqual(reply.error.message, f"fail failed unexpectedly: it raised {kind}")
                ((level, entry),) = reply.logs
                self.assertEqual(level, "error")
                self.assertTrue(entry.startswith("fail failed:\nTraceback (most recent call last):\n"), entry)
            self.assertTrue(entry.endswith("ValueError: the token is s3cr3t"), entry)
            with self.assertRaisesRegex(AssertionError, "(?s)it raised ValueError.*test_calls.py.*s3cr3t"):
                reply.data
        self.assertEqual(text.getvalue(), "")

    def test_a_long_stack_is_told_in_parts_that_a_host_shows_whole(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def fail(size: int) -> None:
            raise ValueError("\n".join("a line 行 " * 50 for _ in range(size)) + "\nthe end")

        with Host(plugin) as host, support.quietly():
            for size in (20, 2000):
                logs = host.call("fail", size=size).logs
                self.assertTrue(2 <= len(logs) <= 10, len(logs))
                self.assertEqual({level for level, _ in logs}, {"error"})
                self.assertLess(max(len(entry.encode()) for _, entry in logs), 8 * 1024)
                self.assertTrue(logs[0][1].startswith("fail failed:\nTraceback"))
                self.assertTrue(logs[-1][1].endswith("\nthe end"))

    def test_where_a_hook_fails_a_test_shows_the_stack(self) -> None:
        plugin = Plugin("test")

        @plugin.init
        def init() -> None:
            raise KeyError("amount")

        with Host(plugin) as host, support.quietly() as text, self.assertRaises(Error):
            host.start()
        self.assertIn("init failed:\nTraceback", text.getvalue())

    def test_an_error_with_a_bad_name_says_what_its_author_wrote_and_the_log_what_is_wrong(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def fail() -> None:
            raise Error("NotThere", "it is not there")

        with Host(plugin) as host, support.quietly():
            reply = host.call("fail")
        told = "it is not there; a fault in the plugin: 'NotThere' is no name of a failure"
        self.assertEqual((reply.error.code, reply.error.message), (2, told))
        (entry,) = [entry for level, entry in reply.logs if level == "error"]
        self.assertIn("expected 1 to 64 of a-z, 0-9 and _; did you mean not_there?", entry)
        self.assertIn("test_calls.py", entry)

    def test_progress_in_words_says_how_it_is_written(self) -> None:
        plugin = Plugin("test")
        wrong: Dict[str, Any] = {
            "done is of the type str": lambda ctx: ctx.progress("half"),
            "total is of the type str": lambda ctx: ctx.progress(0.5, "half"),
            "done is of the type NoneType": lambda ctx: ctx.progress(None),
            "done is of the type bool": lambda ctx: ctx.progress(True),
            "done is nan": lambda ctx: ctx.progress(float("nan")),
            "total is inf": lambda ctx: ctx.progress(1, float("inf")),
            "it is of the type int": lambda ctx: ctx.progress(1, 2, 3),
        }

        @plugin.operation
        def work(how: str, ctx: Context) -> None:
            ctx.progress(Decimal("0.5"), 10**20, "fine")
            wrong[how](ctx)

        with Host(plugin) as host, support.quietly():
            for how in wrong:
                with self.subTest(how):
                    reply = host.call("work", how=how)
                    self.assertEqual([it.done for it in reply.progress], [0.5])
                    self.assertRegex(reply.error.message, f"^work failed: .*progress\\(3, 10, .*: {how}$")
                    self.assertIn("test_calls.py", reply.logs[0][1])
        with self.assertRaisesRegex(TypeError, "progress takes numbers"):
            Context.for_test().progress("half")  # type: ignore[arg-type]

    def test_a_result_that_is_no_json_is_told_so(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def ratio() -> Any:
            return {"ratio": float("nan")}

        with Host(plugin) as host:
            error = host.call("ratio").error
        self.assertEqual(error.code, 2)
        self.assertIn("the result of ratio cannot be written as JSON: it['ratio'] is nan", error.message)

    def test_a_type_error_of_the_handler_is_its_own(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def add(number: int) -> Any:
            return number + ""  # type: ignore[operator]

        with Host(plugin) as host, support.quietly():
            self.assertEqual(host.call("add", number=1).error.code, 2)

    def test_an_unknown_operation_is_answered_with_those_there_are(self) -> None:
        plugin = Plugin("test")
        plugin.operation(name="one")(lambda: None)
        with Host(plugin) as host:
            error = host.call("two").error
        self.assertEqual((error.code, error.message), (-32601, "test has no operation 'two'; it has one"))


class Contexts(unittest.TestCase):
    def test_a_handler_is_tested_without_a_host(self) -> None:
        def handler(ctx: Context) -> Any:
            ctx.info("lost")
            ctx.progress(1, 2)
            ctx.partial([])
            return ctx.state, ctx.caller, ctx.attempt, ctx.cancelled, 9 < ctx.time_left <= 10

        context = Context.for_test(state="s", caller="ada", deadline=10)
        self.assertEqual(handler(context), ("s", "ada", 1, False, True))
        with self.assertRaises(Error) as raised:
            context.call("other.lookup")
        self.assertEqual(raised.exception.name, "no_host")
        with self.assertRaises(Cancelled):
            Context.for_test(cancelled=True).check()
        self.assertTrue(Context.for_test(cancelled=True).wait_cancelled(60))

    def test_an_async_one_as_well(self) -> None:
        async def handler(ctx: AsyncContext) -> Any:
            try:
                await ctx.ask("Who?")
            except Error as error:
                return error.name

        self.assertEqual(asyncio.run(handler(AsyncContext.for_test())), "no_host")

    def test_the_deadline_moves_while_people_are_asked(self) -> None:
        context = Context.for_test(deadline=5)
        before = context.deadline
        with context._call.asking():
            start = time.monotonic()
            while time.monotonic() - start < 0.01:
                pass
            self.assertGreaterEqual(context.deadline - before, 0.01)
        moved = context.deadline
        self.assertGreaterEqual(moved - before, 0.01)
        self.assertEqual(context.deadline, moved)

    def test_a_deadline_beyond_all_bounds_is_a_day(self) -> None:
        self.assertLessEqual(Context.for_test(deadline=1e18).time_left, 24 * 60 * 60)

    def test_what_goes_beside_an_answer(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def speak(ctx: Context) -> Reply[int]:
            ctx.debug("a")
            ctx.info("b")
            ctx.warn("c")
            ctx.error("d")
            ctx.progress(1)
            ctx.progress(1.5, 2, "half")
            ctx.partial({"a": 1})
            return Reply(3, summary="three", next_actions=[{"operation": "test.speak"}])

        with Host(plugin) as host:
            reply = host.call("speak")
        self.assertEqual(reply.logs, [("debug", "a"), ("info", "b"), ("warn", "c"), ("error", "d")])
        self.assertEqual(
            [(one.done, one.total, one.message) for one in reply.progress], [(1, None, None), (1.5, 2, "half")]
        )
        self.assertEqual((reply.partials, reply.data, reply.summary), ([{"a": 1}], 3, "three"))
        self.assertEqual(reply.next_actions, [{"operation": "test.speak"}])

    def test_numbers_keep_every_digit(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def echo(number: int) -> int:
            return number

        with Host(plugin) as host:
            for number in (2512292042121000001, -(2**63), 2**64 - 1, 10**100):
                self.assertEqual(host.call("echo", number=number).data, number)


class OtherPlugins(unittest.TestCase):
    def plugin(self) -> Plugin:
        plugin = Plugin("test").requires("weather")

        @plugin.operation
        def relay(city: str, ctx: Context) -> Any:
            reply = ctx.call("weather.now", {"city": city}, unit="celsius")
            assert isinstance(reply, HostReply) and reply.call_id == "inner"
            return Reply(reply.data, summary=reply.summary)

        @plugin.operation
        def wrap(ctx: Context) -> Any:
            try:
                ctx.call("weather.now")
            except Error as error:
                raise Error("no_weather", "there is no weather") from error

        return plugin

    def test_another_plugin_is_used(self) -> None:
        asked: List[Any] = []

        def now(arguments: Dict[str, Any]) -> Any:
            asked.append(arguments)
            return Reply({"temp": 24}, summary="24 degrees")

        with Host(self.plugin(), calls={"weather.now": now}) as host:
            reply = host.call("relay", city="北京")
        self.assertEqual((reply.data, reply.summary), ({"temp": 24}, "24 degrees"))
        self.assertEqual(asked, [{"city": "北京", "unit": "celsius"}])

    def test_its_failure_is_handed_on_with_its_cause(self) -> None:
        cause = {"operation": "weather.now", "call_id": "c", "error": {"code": 6003}}

        def down(arguments: Any) -> Any:
            error = Error("stopped", "weather is down", retryable=True)
            error.cause = cause
            raise error

        with Host(self.plugin(), calls={"weather.now": down}) as host:
            plain, wrapped = host.call("relay", city="x").error, host.call("wrap").error
        self.assertEqual((plain.code, plain.name, plain.retryable, plain.cause), (3, "stopped", True, cause))
        self.assertEqual((wrapped.code, wrapped.name, wrapped.cause), (1, "no_weather", cause))

    def test_threads_that_a_handler_starts_can_call_too(self) -> None:
        plugin = Plugin("test").requires("weather")

        @plugin.operation
        def many(ctx: Context) -> Any:
            with ThreadPoolExecutor(8) as pool:
                return list(pool.map(lambda n: ctx.call("weather.now", n=n).data, range(40)))

        with Host(plugin, calls={"weather.now": lambda arguments: arguments["n"] * 2}) as host:
            for _ in range(3):
                self.assertEqual(host.call("many").data, [n * 2 for n in range(40)])

    def test_a_thread_that_outlives_its_call_does_not_stop_the_next(self) -> None:
        plugin = Plugin("test").requires("weather")
        may_answer, outcome = threading.Event(), []
        asks = threading.Event()

        @plugin.operation
        def leave(ctx: Context) -> None:
            def ask() -> None:
                outcome.append(ctx.call("weather.now").data)

            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            threads.append(thread)
            asks.wait(support.PATIENCE)

        @plugin.operation
        def echo(text: str) -> str:
            return text

        def slow(arguments: Any) -> Any:
            asks.set()
            may_answer.wait(support.PATIENCE)
            return "late"

        threads: List[threading.Thread] = []
        with Host(plugin, calls={"weather.now": slow}) as host:
            host.call("leave").data
            self.assertEqual([host.call("echo", text=str(n)).data for n in range(50)], [str(n) for n in range(50)])
            may_answer.set()
            threads[0].join(support.PATIENCE)
            self.assertEqual(outcome, ["late"])
            self.assertEqual(host.call("echo", text="x").data, "x")

    def test_the_end_wakes_everybody(self) -> None:
        plugin = Plugin("test").requires("weather")
        outcome: List[Any] = []
        threads: List[threading.Thread] = []
        asked, never = threading.Event(), threading.Event()

        @plugin.operation
        def leave(ctx: Context) -> None:
            def ask() -> None:
                try:
                    ctx.call("weather.now")
                except Error as error:
                    outcome.append(error.name)

            threads.append(threading.Thread(target=ask, daemon=True))
            threads[0].start()
            asked.wait(support.PATIENCE)

        def silent(arguments: Any) -> Any:
            asked.set()
            never.wait(support.PATIENCE)

        with Host(plugin, calls={"weather.now": silent}) as host:
            host.call("leave").data
        threads[0].join(support.PATIENCE)
        never.set()
        self.assertEqual((outcome, host._serving.is_alive()), (["no_host"], False))


class People(unittest.TestCase):
    def test_answers_come_as_the_types_that_were_asked_for(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def ask(ctx: Context) -> Any:
            sure = ctx.ask("Sure?", bool, name="sure")
            name: str = ctx.ask("Who?", name="who")
            secret = ctx.ask_secret("Password?")
            many = ctx.ask_many([Question("days", "How long?", int), Question("pin", "PIN?", sensitive=True)])
            few = ctx.ask("How many?", int, name="few", schema={"type": "integer", "maximum": 3})
            return [sure, name, secret, many, few]

        prompts: List[Any] = []

        def person(name: str, prompt: str) -> Any:
            prompts.append(prompt)
            return {"sure": True, "who": "Ada", "answer": "opensesame", "days": 3, "pin": "1", "few": 2}[name]

        with Host(plugin, answers=person) as host:
            data = host.call("ask").data
        self.assertEqual(data, [True, "Ada", "opensesame", {"days": 3, "pin": "1"}, 2])
        self.assertEqual(prompts, ["Sure?", "Who?", "Password?", "How long?", "PIN?", "How many?"])

    def test_why_there_is_no_answer_is_handed_on(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def ask(ctx: Context) -> Any:
            return ctx.ask("Sure?", bool)

        with Host(plugin) as host:
            self.assertEqual(host.call("ask").error.name, "nobody_to_ask")

        def declines(name: str, prompt: str) -> Any:
            raise Error("declined", "they will not say")

        with Host(plugin, answers=declines) as host:
            error = host.call("ask").error
        self.assertEqual((error.code, error.name), (4, "declined"))


class Variables(unittest.TestCase):
    def plugin(self) -> Plugin:
        plugin = Plugin("test")

        @plugin.operation
        def count(ctx: Context) -> Any:
            before = ctx.vars.get("count", 0)
            swapped = ctx.vars.compare_and_set("count", before or None, before + 1)
            ctx.vars.set("last", before)
            return swapped, ctx.vars.get("count"), ctx.vars.compare_and_set("count", "other", 0)

        @plugin.operation
        def shout(ctx: Context) -> None:
            ctx.emit("shouted", {"loud": True})

        return plugin

    def test_they_are_not_offered_yet(self) -> None:
        with Host(self.plugin()) as host:
            error = host.call("count").error
            self.assertEqual((error.name, error.message), ("not_offered", "this host offers no session variables"))
            self.assertEqual(error.hint, "do without, or keep it in data_dir")
            self.assertEqual(host.call("shout").error.message, "this host offers no events")

    def test_where_a_host_offers_them_they_work(self) -> None:
        with Host(self.plugin(), variables={}) as host:
            self.assertEqual(host.call("count").data, [True, 1, False])
            self.assertEqual(host.call("count").data, [True, 2, False])
            self.assertEqual(host.variables, {"count": 2, "last": 1})


class Cancelling(unittest.TestCase):
    def test_a_handler_that_looks_stops(self) -> None:
        plugin = Plugin("test", stops_when_cancelled=True)

        @plugin.operation
        def look(ctx: Context) -> None:
            ctx.progress(1)
            while True:
                ctx.check()

        @plugin.operation
        def wait(ctx: Context) -> str:
            ctx.progress(1)
            return "stopped" if ctx.wait_cancelled(support.PATIENCE) else "never"

        @plugin.operation
        def ask(ctx: Context) -> Any:
            ctx.progress(1)
            return ctx.ask("Sure?")

        gate = threading.Event()

        def person(name: str, prompt: str) -> Any:
            gate.wait(support.PATIENCE)
            return "late"

        for concurrency in (1, 4):
            plugin.concurrency = concurrency
            with self.subTest(concurrency), Host(plugin, answers=person) as host:
                for operation in ("look", "wait", "ask"):
                    running = host.begin(operation)
                    running.wait_for_progress(1)
                    running.cancel()
                    reply = running.wait()
                    if operation == "wait":
                        self.assertEqual(reply.data, "stopped")
                    else:
                        self.assertEqual(reply.error.code, -32800)
        gate.set()

    def test_waiting_ends_in_time(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def wait(ctx: Context) -> bool:
            return ctx.wait_cancelled(0.01)

        for concurrency in (1, 2):
            plugin.concurrency = concurrency
            with Host(plugin) as host:
                self.assertIs(host.call("wait").data, False)

    def test_a_call_that_is_cancelled_before_it_runs_does_not(self) -> None:
        ran: List[str] = []
        plugin = Plugin("test")

        @plugin.operation
        def first(ctx: Context) -> None:
            ctx.progress(1)
            gate.wait(support.PATIENCE)

        @plugin.operation
        def second() -> None:
            ran.append("second")

        gate = threading.Event()
        with Host(plugin) as host:
            one = host.begin("first")
            one.wait_for_progress(1)
            two = host.begin("second")
            two.cancel()
            gate.set()
            one.wait().data
            self.assertEqual(two.wait().error.code, -32800)
        self.assertEqual(ran, [])


class Concurrency(unittest.TestCase):
    def test_calls_meet_in_threads(self) -> None:
        plugin = Plugin("test", concurrency=3)
        barrier = threading.Barrier(3, timeout=support.PATIENCE)

        @plugin.operation
        def meet(ctx: Context) -> str:
            barrier.wait()
            return ctx.call_id

        with Host(plugin) as host:
            for _ in range(3):
                running = [host.begin("meet") for _ in range(3)]
                self.assertEqual(len({call.wait().data for call in running}), 3)

    def test_nothing_of_one_call_is_seen_by_the_next(self) -> None:
        seen: contextvars.ContextVar[Optional[str]] = contextvars.ContextVar("seen", default=None)
        for concurrency in (1, 2):
            plugin = Plugin("test", concurrency=concurrency)

            @plugin.operation
            def mark(text: str) -> Any:
                before = seen.get()
                seen.set(text)
                return before

            with Host(plugin) as host:
                self.assertEqual([host.call("mark", text=str(n)).data for n in range(4)], [None] * 4)

    def test_calls_wait_for_an_init_that_takes_its_time(self) -> None:
        for is_async in (False, True):
            plugin = Plugin("test", concurrency=2)
            gate = threading.Event()

            @plugin.init
            def init() -> str:
                gate.wait(support.PATIENCE)
                return "open"

            if is_async:

                @plugin.operation
                async def state(ctx: AsyncContext) -> Any:
                    return ctx.state

            else:

                @plugin.operation
                def state(ctx: Context) -> Any:  # type: ignore[misc]
                    return ctx.state

            with support.InMemory(plugin) as partner:
                partner.send(support.request("init", 1, config={}), support.call("state", 2))
                gate.set()
                self.assertEqual(partner.receive()["id"], 1)
                self.assertEqual(partner.receive()["result"], {"data": "open"})

    def test_reload_goes_on_beside_calls(self) -> None:
        plugin = Plugin("test", concurrency=2)
        gate = threading.Event()

        @plugin.reload
        def reload(config: Dict[str, Any]) -> None:
            gate.set()

        @plugin.operation
        def wait(ctx: Context) -> bool:
            ctx.progress(1)
            return gate.wait(support.PATIENCE)

        with Host(plugin) as host:
            running = host.begin("wait")
            running.wait_for_progress(1)
            host.reload({})
            self.assertIs(running.wait().data, True)


class EventLoop(unittest.TestCase):
    def test_calls_meet_in_one_loop_and_context_variables_survive(self) -> None:
        plugin = Plugin("test", concurrency=3)
        mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark")
        arrived: List[asyncio.Future[None]] = []
        loops = set()

        @plugin.operation
        async def meet(name: str, ctx: AsyncContext) -> Any:
            mark.set(name)
            loop = asyncio.get_running_loop()
            loops.add(loop)
            future: asyncio.Future[None] = loop.create_future()
            arrived.append(future)
            if len(arrived) == 3:
                for other in arrived:
                    other.set_result(None)
            await future
            await asyncio.sleep(0)
            ctx.info("met")
            return mark.get()

        @plugin.operation
        def plain(ctx: Context) -> str:
            return threading.current_thread().name

        with Host(plugin) as host:
            running = [host.begin("meet", name=name) for name in "abc"]
            replies = [call.wait() for call in running]
            self.assertEqual([reply.data for reply in replies], ["a", "b", "c"])
            self.assertEqual([reply.logs for reply in replies], [[("info", "met")]] * 3)
            self.assertEqual(len(loops), 1)
            self.assertTrue(host.call("plain").data.startswith("lane-"))

    def test_what_waits_for_the_host_is_awaited(self) -> None:
        plugin = Plugin("test", concurrency=4).requires("weather")

        @plugin.operation
        async def all_at_once(ctx: AsyncContext) -> Any:
            replies = await asyncio.gather(*(ctx.call("weather.now", n=n) for n in range(5)))
            sure = await ctx.ask("Sure?", bool)
            secret = await ctx.ask_secret("PIN?")
            many = await ctx.ask_many([Question("who", "Who?")])
            await ctx.vars.set("n", 1)
            return [reply.data for reply in replies], sure, secret, many, await ctx.vars.get("n"), ctx.cancelled

        calls = {"weather.now": lambda arguments: arguments["n"]}
        answers = {"who": "Ada"}

        def person(name: str, prompt: str) -> Any:
            return answers.get(name, True if prompt == "Sure?" else "1")

        with Host(plugin, calls=calls, answers=person, variables={}) as host:
            self.assertEqual(host.call("all_at_once").data, [[0, 1, 2, 3, 4], True, "1", {"who": "Ada"}, 1, False])

    def test_a_forgotten_await_is_no_yes(self) -> None:
        plugin = Plugin("test", concurrency=2).requires("other")
        removed: List[str] = []

        @plugin.operation
        async def remove(how: str, ctx: AsyncContext) -> str:
            if how == "if" and ctx.ask("Remove it?", bool):
                removed.append("all")
            if how == "wait" and ctx.wait_cancelled(1):
                removed.append("all")
            if how == "attribute":
                removed.append(ctx.call("other.find").data)  # type: ignore[attr-defined]
            if how == "part":
                removed.append(ctx.ask_many([])["days"])  # type: ignore[index]
            if how == "use":
                removed.append(ctx.ask("Who?") + "!")  # type: ignore[operator]
            if how == "statement":
                ctx.call("other.remove")  # type: ignore[unused-coroutine]
            if how == "equal" and ctx.ask_secret("PIN?") == "1":
                removed.append("all")
            if how == "task":
                asyncio.create_task(ctx.vars.set("n", 1))
            return "done"

        def call(arguments: Any) -> None:
            removed.append("called")

        with Host(plugin, calls={"other.remove": call, "other.find": call}, answers={"answer": True}) as host:
            for how, told in [
                ("if", ": it goes on without an answer; did you forget `await` before ask(…)?"),
                ("wait", ": it goes on without an answer; did you forget `await` before wait_cancelled(…)?"),
                ("statement", ": it ended without an answer; did you forget `await` before call(…)?"),
                ("equal", ": it ended without an answer; did you forget `await` before ask_secret(…)?"),
                ("task", ": it ended without an answer; did you forget `await` before vars.set(…)?"),
                ("attribute", ": it wants data of an answer that has not come; did you forget `await` before call(…)?"),
                ("part", ": it wants a part of an answer that has not come; did you forget `await` before ask_many(…)?"),
                ("use", " unexpectedly: it raised TypeError; did you forget `await` before ask(…)?"),
            ]:
                with self.subTest(how), support.quietly():
                    reply = host.call("remove", how=how)
                    self.assertEqual((reply.error.code, reply.error.message), (2, "remove failed" + told))
                    self.assertIn("Traceback", reply.logs[0][1])
            self.assertEqual(host.call("remove", how="").data, "done")
        self.assertEqual(removed, [])

    def test_what_is_awaited_by_another_way_is_awaited(self) -> None:
        plugin = Plugin("test", concurrency=2).requires("other")

        @plugin.operation
        async def race(ctx: AsyncContext) -> Any:
            first = asyncio.create_task(ctx.call("other.find", n=1))
            second = await asyncio.wait_for(ctx.call("other.find", n=2), 30)
            return [(await first).data, second.data]

        @plugin.operation
        async def handed_on(ctx: AsyncContext) -> Any:
            return await asyncio.shield(ctx.ask("Sure?", bool))

        with Host(plugin, calls={"other.find": lambda said: said["n"]}, answers={"answer": False}) as host:
            self.assertEqual(host.call("race").data, [1, 2])
            self.assertIs(host.call("handed_on").data, False)

    def test_cancelling_cancels_the_task(self) -> None:
        plugin = Plugin("test", concurrency=2)
        cleaned: List[str] = []

        @plugin.operation
        async def forever(ctx: AsyncContext) -> None:
            try:
                ctx.progress(1)
                await asyncio.get_running_loop().create_future()
            finally:
                cleaned.append("yes")

        @plugin.operation
        async def watch(ctx: AsyncContext) -> bool:
            watcher = asyncio.create_task(ctx.wait_cancelled())
            ctx.progress(1)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()
            return await watcher

        with Host(plugin) as host:
            running = host.begin("forever")
            running.wait_for_progress(1)
            running.cancel()
            self.assertEqual(running.wait().error.code, -32800)
            self.assertEqual(cleaned, ["yes"])
            running = host.begin("watch")
            running.wait_for_progress(1)
            running.cancel()
            self.assertIs(running.wait().data, True)

    def test_hooks_may_be_async(self) -> None:
        plugin = Plugin("test")
        seen: List[str] = []

        @plugin.init
        async def init() -> str:
            await asyncio.sleep(0)
            return "open"

        @plugin.shutdown
        async def shutdown(state: str) -> None:
            seen.append(state)

        @plugin.operation
        async def fail(ctx: AsyncContext) -> None:
            raise Error("named", ctx.state)

        with Host(plugin) as host, support.quietly():
            self.assertEqual(host.call("fail").error.message, "open")
            host.shutdown()
        self.assertEqual(seen, ["open"])


class AfterTheEnd(unittest.TestCase):
    def test_calls_before_init_and_after_shutdown_are_refused(self) -> None:
        plugin = Plugin("test", concurrency=2)
        plugin.init(lambda: None)
        plugin.operation(name="it")(lambda: None)
        with support.InMemory(plugin) as partner:
            partner.send(support.call("it", 1))
            self.assertEqual(partner.receive()["error"]["data"]["name"], "not_initialised")
            partner.send(support.request("init", 2), support.request("shutdown", 3, grace_ms=1000))
            self.assertEqual([partner.receive()["id"], partner.receive()["id"]], [2, 3])
            self.assertEqual(partner.exit(), 0)

    def test_shutdown_waits_for_calls(self) -> None:
        for is_async in (False, True):
            plugin = Plugin("test", concurrency=2)
            gate = threading.Event()
            order: List[str] = []
            if is_async:

                @plugin.operation
                async def wait(ctx: AsyncContext) -> None:
                    ctx.progress(1)
                    await asyncio.get_running_loop().run_in_executor(None, gate.wait, support.PATIENCE)
                    order.append("call")

            else:

                @plugin.operation
                def wait(ctx: Context) -> None:  # type: ignore[misc]
                    ctx.progress(1)
                    gate.wait(support.PATIENCE)
                    order.append("call")

            @plugin.shutdown
            def shutdown() -> None:
                order.append("shutdown")

            with support.InMemory(plugin) as partner:
                partner.send(support.call("wait", 1))
                self.assertEqual(partner.receive()["method"], "progress")
                partner.send(support.request("shutdown", 2, grace_ms=60_000), support.request("ping", 3))
                self.assertEqual(partner.receive()["id"], 3, "it reads meanwhile")
                gate.set()
                self.assertEqual([partner.receive()["id"], partner.receive()["id"]], [1, 2])
                self.assertEqual(partner.exit(), 0)
            self.assertEqual(order, ["call", "shutdown"])


if __name__ == "__main__":
    unittest.main()

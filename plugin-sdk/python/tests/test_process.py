"""The plugin as a process: what its handlers do cannot hurt the conversation, and it leaves when it should."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import tempfile
import time
import unittest
from typing import Any, Dict

from support import HERE, PATIENCE, PYTHON, SOURCES, Process, call, notification, program, request

ROUGH = HERE / "rough.py"
#: As a plugin may take to leave: a quarter of a second, and what a loaded machine adds, in seconds.
SOON = 10.0


def result(request_id: Any, data: Any) -> Dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"data": data}}


class Streams(unittest.TestCase):
    def test_t6_prints_and_children_cannot_touch_the_wire(self) -> None:
        with Process(ROUGH) as plugin:
            self.assertEqual(plugin.call("print", 1), result(1, "printed"))
            self.assertEqual(plugin.call("echo", 2, text="一"), result(2, "一"))
            self.assertEqual(plugin.call("descriptors", 3), result(3, 3))
            plugin.close()
            self.assertEqual(plugin.exit(), 0)
            stderr = plugin.stderr()
        for part in ('stray {"jsonrpc":', "more", "raw", "from the child"):
            self.assertIn(part, stderr)

    def test_what_is_said_here_is_not_glued_to_what_was_printed(self) -> None:
        with Process(ROUGH) as plugin:
            plugin.send(call("half", 1))
            entry = plugin.receive()["params"]
            self.assertEqual((entry["level"], entry["call_id"]), ("error", "c-1"))
            self.assertTrue(entry["message"].startswith("half failed:\nTraceback"), entry)
            self.assertEqual(plugin.receive()["error"]["code"], 2)
            plugin.send("no message")
            plugin.close()
            self.assertEqual(plugin.exit(), 0)
            self.assertIn("half a line\nskipped a line", plugin.stderr())

    def test_c143_programs_that_read_stdin_find_it_empty_and_eat_nothing(self) -> None:
        with Process(ROUGH) as plugin:
            for number in (1, 2):
                # The next request stands in the pipe already while the programs run.
                plugin.send(call("tools", number))
                plugin.send(call("echo", number * 10, text="still whole"))
                self.assertEqual(plugin.receive(), result(number, ["", ""]))
                self.assertEqual(plugin.receive(), result(number * 10, "still whole"))
            plugin.close()
            self.assertEqual(plugin.exit(), 0)

    def test_logging_goes_to_the_log_with_its_call(self) -> None:
        with Process(ROUGH) as plugin:
            plugin.send(request("init", 1, config={}, log_level="info"))
            plugin.receive()
            plugin.send(call("log", 2))
            lines = [plugin.receive()["params"] for _ in range(4)]
            self.assertEqual(plugin.receive(), result(2, None))
            self.assertEqual([line["level"] for line in lines], ["info", "warn", "error", "error"])
            self.assertEqual({line["call_id"] for line in lines}, {"c-2"})
            self.assertEqual([lines[0]["message"], lines[1]["message"]], ["1 plain", "a warning"])
            self.assertIn("it failed\nTraceback", lines[2]["message"])
            self.assertEqual(lines[3]["message"], "from a thread")
            plugin.send(request("init", 3, config={}, log_level="debug"), call("log", 4))
            plugin.receive()
            self.assertEqual(plugin.receive()["params"]["message"], "unseen")

    def test_a_logger_to_stderr_is_replaced(self) -> None:
        text = """
            import logging
            from plugd_sdk import operation, serve
            logging.basicConfig(level=logging.ERROR)

            @operation
            def talk() -> None:
                logging.warning("too little")
                logging.error("once")

            serve()
            """
        with tempfile.TemporaryDirectory() as folder, Process(program(folder, text)) as plugin:
            message = plugin.call("talk")
            self.assertEqual((message["method"], message["params"]["message"]), ("log", "once"))
            plugin.receive()
            plugin.close()
            plugin.exit()
            self.assertEqual(plugin.stderr(), "")


class Conversations(unittest.TestCase):
    def test_a_conversation_pasted_in_whole_is_answered_whole(self) -> None:
        with Process(ROUGH) as plugin:
            plugin.send(
                '\ufeff{"jsonrpc":"2.0","id":"a/\\u0041","method":"ping"}\r',
                "",
                "not a message",
                "[1]",
                b"\xff\xfe\n",
                '{"jsonrpc":"2.0","method":"who/knows","params":[1]}',
                '  {"jsonrpc":"2.0","id":1.50,"method":"who/knows"}  ',
                request("init", 2, config={}),
                call("echo", -3, text="x"),
                '{"jsonrpc":"2.0","id":7,"method":"call","params":{"operation":"echo","arguments":[]}}',
                '{"jsonrpc":"2.0","id":8,"method":"call"',
                '{"jsonrpc":"2.0","id":9,"method":"ping","params":{"large":' + "9" * 5000 + "}}",
                request("shutdown", 4, reason="stop", grace_ms=5000),
            )
            plugin.close()
            self.assertEqual(plugin.receive(), {"jsonrpc": "2.0", "id": "a/A", "result": {}})
            message = plugin.receive()
            self.assertEqual((message["id"], message["error"]["code"]), (1.5, -32601))
            # What can be answered at once is, whatever else waits.
            self.assertEqual([plugin.receive()["id"] for _ in range(3)], [7, 8, 9])
            self.assertEqual(plugin.receive(), {"jsonrpc": "2.0", "id": 2, "result": {}})
            self.assertEqual(plugin.receive(), result(-3, "x"))
            self.assertEqual(plugin.receive(), {"jsonrpc": "2.0", "id": 4, "result": {}})
            self.assertTrue(plugin.ended())
            self.assertEqual(plugin.exit(), 0)
            self.assertEqual(plugin.stderr().count("skipped a line from the host"), 5)

    def test_split_and_joined_frames_are_read_alike(self) -> None:
        with Process(ROUGH) as plugin:
            line = json.dumps(call("echo", 1, text="在" * 10), ensure_ascii=False).encode() + b"\n"
            for byte in line:
                plugin.send(bytes([byte]))
            self.assertEqual(plugin.receive(), result(1, "在" * 10))
            plugin.send(*[call("echo", number, text=str(number)) for number in range(200)])
            for number in range(200):
                self.assertEqual(plugin.receive(), result(number, str(number)))

    def test_large_frames_in_both_directions(self) -> None:
        with Process(ROUGH) as plugin:
            text = "é" * (4 * 1024 * 1024)
            plugin.send(call("echo", 1, text=text))
            self.assertEqual(plugin.receive(), result(1, text))

    def test_a_frame_that_is_too_large_fails_its_call_only(self) -> None:
        limit = 16 * 1024 * 1024
        with Process(ROUGH) as plugin:
            error = plugin.call("large", 1, size=limit)["error"]
            self.assertEqual((error["code"], error["data"]["name"]), (1, "too_large"))
            self.assertIn("a message has at most 16,777,216", error["message"])
            self.assertEqual(plugin.call("large_partial", 2, size=limit)["params"]["level"], "error")
            self.assertEqual(plugin.receive()["error"]["code"], 2)
            plugin.send(b'{"jsonrpc":"2.0","id":3,"method":"call","params":"' + b"x" * limit + b'"}\n')
            error = plugin.receive()["error"]
            self.assertIn("a message of more than 16,777,216 bytes cannot be read", error["message"])
            self.assertEqual(plugin.call("echo", 4, text="whole"), result(4, "whole"))

    def test_cancel_is_noticed_by_a_handler_that_looks(self) -> None:
        with Process(ROUGH) as plugin:
            self.assertEqual(plugin.call("looks", 1)["method"], "progress")
            plugin.send(notification("cancel", call_id="c-1"))
            self.assertEqual(plugin.receive(), result(1, "stopped"))
            # In one write with its call it is noticed, too; one that comes too late is ignored.
            plugin.send(call("looks", 2), notification("cancel", call_id="c-2"), notification("cancel", call_id="c-1"))
            self.assertEqual(plugin.receive()["error"]["code"], -32800)

    def test_a_host_without_a_common_version_learns_which_side_is_too_old(self) -> None:
        with Process(ROUGH) as plugin:
            for versions, advice in [([0], "upgrade plugd"), ([2, 3], "upgrade the plugin")]:
                plugin.send(request("describe", 1, protocol={"versions": versions}))
                self.assertIn(advice, plugin.receive()["error"]["message"])


class Ends(unittest.TestCase):
    def leaves_soon(self, plugin: Process) -> None:
        start = time.monotonic()
        self.assertEqual(plugin.exit(), 0)
        self.assertLess(time.monotonic() - start, SOON)

    def test_the_end_of_input_ends_it_though_a_handler_runs(self) -> None:
        for operation in ("stuck", "looks"):
            with self.subTest(operation), Process(ROUGH) as plugin:
                self.assertEqual(plugin.call(operation)["method"], "progress")
                plugin.close()
                self.leaves_soon(plugin)

    def test_c066_a_plugin_whose_host_is_gone_leaves_at_once_and_quietly(self) -> None:
        with Process(ROUGH) as plugin:
            self.assertEqual(plugin.call("chatter")["method"], "log")
            plugin.child.stdout.close()
            plugin.close()
            self.leaves_soon(plugin)
            self.assertLess(len(plugin.stderr()), 1000)

    def test_a_broken_pipe_alone_is_enough(self) -> None:
        with Process(ROUGH) as plugin:
            plugin.call("chatter")
            plugin.child.stdout.close()
            self.leaves_soon(plugin)

    def test_a_thread_that_never_ends_does_not_keep_it(self) -> None:
        for how in ("close", "shutdown"):
            with self.subTest(how), Process(ROUGH) as plugin:
                self.assertEqual(plugin.call("linger"), result(1, None))
                if how == "close":
                    plugin.close()
                else:
                    plugin.send(request("shutdown", 2, grace_ms=5000))
                    self.assertEqual(plugin.receive()["id"], 2)
                self.leaves_soon(plugin)

    def test_with_threads_and_with_a_loop_it_leaves_as_well(self) -> None:
        text = """
            import sys, threading
            from plugd_sdk import Context, Plugin

            plugin = Plugin(concurrency=2)

            @plugin.operation
            def stuck(ctx: Context) -> None:
                ctx.progress(1)
                threading.Event().wait()

            if sys.argv[1:] == ["loop"]:
                @plugin.operation
                async def other() -> None: ...

            plugin.serve()
            """
        with tempfile.TemporaryDirectory() as folder:
            path = program(folder, text)
            for arguments in ([], ["loop"]):
                with self.subTest(arguments), Process(path, *arguments) as plugin:
                    self.assertEqual(plugin.call("stuck")["method"], "progress")
                    plugin.close()
                    self.leaves_soon(plugin)
                with self.subTest(arguments), Process(path, *arguments) as plugin:
                    plugin.send(request("shutdown", 1, grace_ms=100))
                    self.assertEqual(plugin.receive()["id"], 1)
                    self.leaves_soon(plugin)


class ByHand(unittest.TestCase):
    def run_with(self, *arguments: str, path: Any = ROUGH) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*PYTHON, str(path), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )

    def test_it_says_what_it_is(self) -> None:
        manifest = json.loads(self.run_with("--describe").stdout)
        self.assertEqual(manifest["operations"][0]["name"], "echo")
        self.assertEqual(self.run_with("--version").stdout, "rough 1.0.0\n")
        usage = self.run_with("--help").stdout
        for part in (
            "rough 1.0.0, a plugd plugin",
            "Does what handlers should not.",
            "Says it back.",
            "[plugins.rough]",
        ):
            self.assertIn(part, usage)

    def test_on_a_terminal_it_says_so_on_stderr_and_leaves(self) -> None:
        ours, theirs = pty.openpty()
        try:
            ran = subprocess.run(
                [*PYTHON, str(ROUGH)],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                universal_newlines=True,
                timeout=PATIENCE,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("rough 1.0.0, a plugd plugin", ran.stderr)

    def test_a_wrong_declaration_is_told_and_ends_it_for_good(self) -> None:
        text = """
            from plugd_sdk import Plugin
            plugin = Plugin("no name", concurency=4)
            plugin.operation(readonly=True)(print)
            plugin.operation(name="Twice")(lambda: None)
            plugin.operation(name="Twice")(lambda: None)
            plugin.serve()
            """
        with tempfile.TemporaryDirectory() as folder:
            ran = self.run_with(path=program(folder, text))
        self.assertEqual((ran.returncode, ran.stdout), (125, ""))
        for part in ("did you mean concurrency", "did you mean read_only", "'no name' is no name", "did you mean twice", "Twice is declared twice"):
            self.assertIn(part, ran.stderr)

    def test_input_from_a_file_is_answered(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lines = program(folder, json.dumps(call("echo", 1, text="x")), "lines")
            loop = program(
                folder,
                """
                from plugd_sdk import operation, serve

                @operation
                async def echo(text: str) -> str:
                    return text

                serve()
                """,
            )
            for path in (ROUGH, loop):
                with open(lines) as source:
                    ran = subprocess.run(
                        [*PYTHON, str(path)],
                        stdin=source,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": str(SOURCES)},
                        timeout=PATIENCE,
                    )
                self.assertEqual((ran.returncode, json.loads(ran.stdout)), (0, result(1, "x")))


if __name__ == "__main__":
    unittest.main()

"""Failures keep what they say, on the wire and between processes."""

from __future__ import annotations

import pickle
import unittest
from typing import Any

import support  # noqa: F401
from plugd_sdk import Cancelled, Error
from plugd_sdk.errors import coded, fault, reason


class NotFound(Error):
    """A class of an author's, with an ``__init__`` of its own."""

    def __init__(self, ticket: str) -> None:
        super().__init__("not_found", f"there is no {ticket}", hint="list them")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Errors(unittest.TestCase):
    def test_only_what_is_said_is_on_the_wire(self) -> None:
        self.assertEqual(Error("a", "b").to_wire(), {"code": 1, "message": "b", "data": {"name": "a"}})
        self.assertEqual(coded(-32602, "b").to_wire(), {"code": -32602, "message": "b"})
        self.assertEqual(Cancelled().to_wire(), {"code": -32800, "message": "the call was cancelled"})

    def test_what_the_host_says_is_kept_whole(self) -> None:
        wire = {
            "code": 3,
            "message": "other is down",
            "data": {"name": "stopped", "hint": "start it", "retryable": True, "cause": {"operation": "other.lookup"}},
        }
        self.assertEqual(Error.from_wire(wire).to_wire(), wire)
        self.assertIsInstance(Error.from_wire({"code": -32800, "message": "over"}), Cancelled)
        odd: Any = {"message": 3, "data": [1]}
        self.assertEqual(Error.from_wire(odd).to_wire(), {"code": 2, "message": "3"})

    def test_they_travel_between_processes(self) -> None:
        for error in (Error("a", "b", hint="c", retryable=True), NotFound("TK-1"), Cancelled(), coded(7, "x")):
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), copy.to_wire(), str(copy)), (type(error), error.to_wire(), str(error)))

    def test_a_fault_is_told_by_its_class_and_a_hook_s_by_its_text(self) -> None:
        self.assertEqual(fault("greet", ValueError("x")).message, "greet failed unexpectedly: it raised ValueError")
        self.assertEqual(reason(ValueError("the first\n  line")).message, "the first line")
        self.assertEqual(reason(KeyError("amount")).message, "KeyError: 'amount'")
        self.assertEqual(reason(Unspeakable()).message, "Unspeakable")
        self.assertEqual((len(reason(ValueError("x" * 1000)).message), fault("x", ValueError()).code), (300, 2))

    def test_a_name_that_is_none_is_refused_where_it_is_given(self) -> None:
        for name, told in [
            ("notFound", "'notFound' is no name of a failure: expected 1 to 64 of a-z, 0-9 and _; did you mean not_found?"),
            ("there is none", "; did you mean there_is_none?"),
            ("", "'' is no name of a failure: expected 1 to 64 of a-z, 0-9 and _"),
            ("没有", "expected 1 to 64"),
            (404, "404 is no name of a failure"),
        ]:
            with self.assertRaises(ValueError) as raised:
                Error(name, "it is not there")  # type: ignore[arg-type]
            self.assertIn(told, str(raised.exception))
        self.assertEqual(Error.from_wire({"code": 3, "message": "m", "data": {"name": "As It Came"}}).name, "As It Came")


if __name__ == "__main__":
    unittest.main()

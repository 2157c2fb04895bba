"""Tests of the plugin: python3 -m unittest"""

import unittest

from plugd_sdk import Context, Error
from plugd_sdk.testing import Host
from plugin import hello, plugin


class TestHello(unittest.TestCase):
    """An operation is a function: call it."""

    def test_greets_by_name(self) -> None:
        self.assertEqual(hello(" Ada ", Context.for_test()), "Hello, Ada!")

    def test_greets_nobody(self) -> None:
        with self.assertRaises(Error) as raised:
            hello(" ", Context.for_test())
        self.assertEqual(raised.exception.name, "nobody_to_greet")


class TestPlugin(unittest.TestCase):
    """The whole plugin, in memory, as plugd would use it."""

    def test_answers_a_call(self) -> None:
        with Host(plugin) as host:
            self.assertEqual(host.call("hello", name="Ada").data, "Hello, Ada!")


if __name__ == "__main__":
    unittest.main()

"""Tests of cities: python3 -m unittest"""

import unittest

import cities
from cities import parse
from plugd_sdk import Error
from plugd_sdk.testing import Host


class Parse(unittest.TestCase):
    def name_in(self, text: str) -> str:
        return parse(text).data.name

    def test_a_city_is_found_in_english_and_in_chinese(self):
        self.assertEqual(self.name_in("how warm is it in hangzhou tomorrow?"), "Hangzhou")
        self.assertEqual(self.name_in("我明天去北京"), "Beijing")
        self.assertEqual(parse("a weekend in Wien").data.said, "Wien")

    def test_the_longest_name_counts_and_only_whole_words(self):
        self.assertEqual(self.name_in("from New York to London"), "New York")
        self.assertEqual(self.name_in("a Yorkshire terrier in York"), "York")

    def test_no_city_is_a_failure_with_a_name(self):
        with self.assertRaises(Error) as raised:
            parse("what time is it?")
        self.assertEqual((raised.exception.name, raised.exception.hint), ("no_city", "ask for the city"))


class Plugin(unittest.TestCase):
    def test_it_is_declared_as_a_service_for_other_plugins(self):
        with Host(cities) as host:
            [declared] = host.manifest()["operations"]
            self.assertEqual(declared["audience"], "plugins")
            reply = host.call("parse", text="去杭州玩三天")
            self.assertEqual((reply.data["name"], reply.summary), ("Hangzhou", "Hangzhou, CN"))

"""Descriptions come from docstrings, in whichever of the three styles they are."""

from __future__ import annotations

import unittest

import support  # noqa: F401
from plugd_sdk.docstrings import parse

EXPECTED = {"city": "The city to travel to, in English or Chinese.", "days": "How many days to stay."}


class Docstrings(unittest.TestCase):
    def test_nothing_says_nothing(self) -> None:
        for text in (None, "", "   \n  "):
            self.assertIsNone(parse(text).description)
            self.assertEqual(parse(text).parameters, {})

    def test_paragraphs_stay_apart_and_wrapped_lines_do_not(self) -> None:
        said = parse(
            """Plans a trip. Books
            nothing.

            What it knows:
            - trains
            - planes, which
              are faster

            It is cheap.
            """
        )
        self.assertEqual(
            said.description,
            "Plans a trip. Books nothing.\n\nWhat it knows:\n- trains\n- planes, which are faster\n\nIt is cheap.",
        )

    def test_google(self) -> None:
        said = parse(
            """Plans a trip.

            Books nothing.

            Args:
                city (str): The city to travel to,
                    in English or Chinese.
                days: How many days
                    to stay.
                *rest: Others.

            Returns:
                The plan: what else.

            Raises:
                ValueError: if it rains.
            """
        )
        self.assertEqual(said.description, "Plans a trip.\n\nBooks nothing.")
        self.assertEqual(said.parameters, {**EXPECTED, "rest": "Others."})

    def test_numpy(self) -> None:
        said = parse(
            """Plans a trip.

            Books nothing.

            Parameters
            ----------
            city : str
                The city to travel to,
                in English or Chinese.
            days : int, optional
                How many days to stay.
            lat, lon
                Where.

            Returns
            -------
            dict
                The plan.

            Notes
            -----
            None.
            """
        )
        self.assertEqual(said.description, "Plans a trip.\n\nBooks nothing.")
        self.assertEqual(said.parameters, {**EXPECTED, "lat": "Where.", "lon": "Where."})

    def test_rest(self) -> None:
        said = parse(
            """Plans a trip.

            Books nothing.

            :param city: The city to travel to,
                in English or Chinese.
            :param int days: How many days to stay.
            :type city: str
            :returns: the plan
            :raises ValueError: if it rains
            """
        )
        self.assertEqual(said.description, "Plans a trip.\n\nBooks nothing.")
        self.assertEqual(said.parameters, EXPECTED)

    def test_fields_of_a_class(self) -> None:
        said = parse("A place.\n\nAttributes:\n    city: Which.\n")
        self.assertEqual((said.description, said.parameters), ("A place.", {"city": "Which."}))

    def test_what_only_looks_like_a_section_is_prose(self) -> None:
        said = parse("Says this: that.\n\nUsage: say it.\n\nIn short:\n    again.")
        self.assertEqual(said.description, "Says this: that.\n\nUsage: say it.\n\nIn short: again.")

    def test_one_line(self) -> None:
        self.assertEqual(parse("Greets somebody. Gives a line.").description, "Greets somebody. Gives a line.")


if __name__ == "__main__":
    unittest.main()

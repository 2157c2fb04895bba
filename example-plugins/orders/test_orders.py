"""Tests of orders: python3 -m unittest"""

import unittest

import orders
from orders import Book, Config, Order, open_book, query
from plugd_sdk import Context, Error
from plugd_sdk.testing import Host

ONE = Order("ON-000001", "U-0001", "2024-12-15", "paid", 70, "+44 7700 900001")
OTHER = Order("ON-000002", "U-0001", "2024-12-16", "shipped", 30, "+44 7700 900001")


class Query(unittest.TestCase):
    def setUp(self):
        book = Book({"ON-000001": ONE, "ON-000002": OTHER}, {"U-0001": [OTHER, ONE]})
        self.ctx = Context.for_test(state=book)

    def test_one_order_by_its_number(self):
        reply = query(self.ctx, order_id="ON-000001")
        self.assertEqual((reply.data.orders, reply.summary), ([ONE], "1 order, total 70"))

    def test_all_orders_of_a_user(self):
        data = query(self.ctx, user_id="U-0001").data
        self.assertEqual((data.count, data.total, data.orders), (2, 100, [OTHER, ONE]))

    def test_both_must_fit_where_both_are_given(self):
        self.assertEqual(query(self.ctx, order_id="ON-000002", user_id="U-0001").data.count, 1)
        with self.assertRaises(Error) as raised:
            query(self.ctx, order_id="ON-000002", user_id="U-0002")
        self.assertEqual(raised.exception.name, "order_not_found")
        self.assertEqual(str(raised.exception), "there is no order ON-000002 of U-0002")


class Plugin(unittest.TestCase):
    def test_five_orders_that_come_to_3200(self):
        with Host(orders) as host:
            reply = host.call("query", user_id="U-1042")
            self.assertEqual((reply.data["count"], reply.summary), (5, "5 orders, total 3200"))
            self.assertEqual(host.call("query", user_id="U-2000").data["count"], 3200)

    def test_the_latest_comes_first(self):
        placed = [order.placed for order in open_book(Config()).by_user["U-1042"]]
        self.assertEqual(placed, sorted(placed, reverse=True))

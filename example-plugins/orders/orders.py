#!/usr/bin/env python3
"""Looks into a shop's orders, and changes none."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Dict, List, Literal, Optional

from plugd_sdk import Context, Error, Param, Plugin, Reply  # a link here; take it along by `cp -RL`

plugin = Plugin("orders", "1.0.0")


@dataclass
class Config:
    """How it is set up: [plugins.orders.config] in plugd.toml."""

    file: Annotated[str, "The orders, as CSV, relative to the plugin's folder."] = "orders.csv"


@dataclass
class Order:
    order_id: str
    user_id: str
    placed: Annotated[str, Param(format="date")]
    status: Literal["paid", "shipped", "delivered", "returned"]
    amount: int
    phone: Annotated[str, "The buyer's number.", Param(sensitive=True)]


@dataclass
class Found:
    count: Annotated[int, "How many orders there are."]
    total: Annotated[int, "What they come to, in yuan."]
    orders: Annotated[List[Order], "The orders, the latest first."]


@dataclass
class Book:
    """What all calls share: the orders by their number, and those of each user."""

    by_number: Dict[str, Order]
    by_user: Dict[str, List[Order]]


@plugin.init
def open_book(config: Config) -> Book:
    book = Book({}, defaultdict(list))
    with Path(__file__).with_name(config.file).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            order = Order(**{**row, "amount": int(row["amount"])})
            book.by_number[order.order_id] = order
            book.by_user[order.user_id].append(order)
    for orders in book.by_user.values():
        orders.reverse()
    return book


# That at least one of two is needed no annotation can say, so here is the whole schema.
ONE_OF_TWO = {
    "type": "object",
    "properties": {
        "order_id": {
            "type": "string",
            "pattern": r"^ON-\d{6}$",
            "description": "The number of one order: ON- and six digits.",
            "examples": ["ON-000243"],
        },
        "user_id": {
            "type": "string",
            "pattern": r"^U-\d{4}$",
            "description": "Whose orders: U- and four digits.",
            "examples": ["U-1042"],
        },
    },
    "anyOf": [{"required": ["order_id"]}, {"required": ["user_id"]}],
}


@plugin.operation(
    title="Orders",
    when_to_use="Somebody asks for an order, for the orders of a customer, or what these come to.",
    when_not_to_use="An order is to be placed, changed or called off: this only reads.",
    examples=["what did U-1042 order", "has ON-000243 been shipped", "查一下 U-1042 的订单", "订单 ON-000243 发货了吗"],
    category="shop",
    input_schema=ONE_OF_TWO,
    read_only=True,
    idempotent=True,
    timeout_ms=5000,
)
def query(ctx: Context, order_id: Optional[str] = None, user_id: Optional[str] = None) -> Reply[Found]:
    """Finds one order by its number, or all orders of a user. Gives each with its status, and what they come to."""
    book: Book = ctx.state
    if order_id is not None:
        known = [book.by_number[order_id]] if order_id in book.by_number else []
        orders = [order for order in known if user_id in (None, order.user_id)]
    else:
        orders = book.by_user.get(user_id, [])
    if not orders:
        asked = " of ".join(asked for asked in (order_id, user_id) if asked)
        raise Error("order_not_found", f"there is no order {asked}", hint="see whether the number is right")
    total = sum(order.amount for order in orders)
    told = "1 order" if len(orders) == 1 else f"{len(orders)} orders"
    return Reply(Found(len(orders), total, orders), summary=f"{told}, total {total}")


if __name__ == "__main__":
    plugin.serve()

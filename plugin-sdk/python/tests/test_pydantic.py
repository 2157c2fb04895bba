"""Pydantic's models are declared, read and written as pydantic says, where it is installed."""

import os
import sys
import unittest
from typing import Annotated, List, Literal, Optional, Union

import support  # noqa: F401
from plugd_sdk import Error, Plugin, Reply
from plugd_sdk.testing import Host

try:
    import pydantic

    HAS_PYDANTIC = pydantic.VERSION.startswith("2.")
except ImportError:
    HAS_PYDANTIC = False

if not HAS_PYDANTIC:
    sys.stderr.write("SKIPPED: models of pydantic were not tested: pydantic 2 is not installed\n")
    if os.environ.get("PLUGD_TEST_REQUIRE_ALL") == "1":
        raise ImportError("PLUGD_TEST_REQUIRE_ALL=1 allows no skip: install pydantic 2")
else:

    class Address(pydantic.BaseModel):
        """Where somebody lives."""

        street: str = pydantic.Field(description="With its number.", min_length=1)
        title: Optional[str] = None

    class Order(pydantic.BaseModel):
        to: Address
        count: pydantic.PositiveInt = 1
        kind: Literal["book", "toy"] = pydantic.Field("book", alias="type")

    class Tree(pydantic.BaseModel):
        name: str
        children: "List[Tree]" = []


@unittest.skipUnless(HAS_PYDANTIC, "pydantic 2 is not installed")
class Models(unittest.TestCase):
    maxDiff = None

    def test_schemas_are_plain_and_untitled(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def order(
            order: Order,
            often: Annotated[int, pydantic.Field(ge=1, le=9, description="How often.")] = 1,
            key: Union[pydantic.SecretStr, None] = None,
        ) -> Reply[Address]:
            """Orders something. Pays for it."""
            return Reply(order.to)

        operation = plugin.manifest()["operations"][0]
        address = {
            "type": "object",
            "description": "Where somebody lives.",
            "properties": {
                "street": {"type": "string", "description": "With its number.", "minLength": 1},
                "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["street"],
        }
        self.assertEqual(
            operation["input_schema"]["properties"],
            {
                "order": {
                    "type": "object",
                    "properties": {
                        "to": address,
                        "count": {"type": "integer", "exclusiveMinimum": 0, "default": 1},
                        "type": {"type": "string", "enum": ["book", "toy"], "default": "book"},
                    },
                    "required": ["to"],
                },
                "often": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How often.", "default": 1},
                "key": {"type": ["string", "null"], "format": "password", "writeOnly": True},
            },
        )
        self.assertEqual(operation["output_schema"]["properties"], address["properties"])

    def test_a_model_that_holds_itself_keeps_its_name(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def grow(tree: Tree) -> None:
            """Grows. Slowly."""

        schema = plugin.manifest()["operations"][0]["input_schema"]
        self.assertEqual(schema["properties"]["tree"], {"$ref": "#/$defs/Tree"})
        self.assertEqual(schema["$defs"]["Tree"]["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})

    def test_arguments_and_answers_are_models(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def order(order: Order, others: List[Order]) -> Order:
            assert isinstance(order, Order) and all(isinstance(other, Order) for other in others)
            return order

        with Host(plugin) as host:
            given = {"to": {"street": "Here 1"}, "type": "toy"}
            data = host.call("order", order=given, others=[given]).data
            self.assertEqual(data, {"to": {"street": "Here 1", "title": None}, "count": 1, "type": "toy"})
            error = host.call("order", order=given, others=[{"to": {"street": ""}, "count": 0}]).error
            self.assertEqual(error.code, -32602)
            self.assertIn("/others/0/to/street: ", error.message)
            self.assertIn("and 1 more", error.message)

    def test_a_configuration_may_be_a_model(self) -> None:
        plugin = Plugin("test")

        @plugin.init
        def init(config: Address) -> str:
            return config.street

        @plugin.operation
        def street() -> None:
            """Says where. Nothing else."""

        self.assertEqual(plugin.manifest()["config_schema"]["required"], ["street"])
        with Host(plugin, config={"street": "Here 1"}) as host:
            host.start()
        with Host(plugin, config={"street": ""}) as host, self.assertRaises(Error) as raised:
            host.start()
        self.assertIn("the configuration does not fit: /street", raised.exception.message)


if __name__ == "__main__":
    unittest.main()

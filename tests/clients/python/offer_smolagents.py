"""Tools of smolagents as functions of cells."""

from smolagents import Tool, tool

from offering import try_out


class Weather(Tool):
    name = "weather"
    description = "The weather at a place."
    inputs = {
        "where": {"type": "object", "description": "lat and lon"},
        "unit": {"type": "string", "description": "C or F", "nullable": True, "enum": ["C", "F"]},
    }
    output_type = "object"
    begun = 0

    def setup(self) -> None:
        type(self).begun += 1
        super().setup()

    def forward(self, where: dict[str, float], unit: str = "C") -> dict[str, object]:
        if where["lat"] > 90:
            raise ValueError("there is no such place")
        return {"temperature": where["lat"], "unit": unit}


@tool
def add(a: int, b: int = 1) -> int:
    """Add.

    Args:
        a: the first
        b: the second
    """
    return a + b


try_out(
    [Weather(), add],
    ("tools.weather({'lat': 3}), tools.weather({'lat': 3}, 'F')['unit']", "({'temperature': 3, 'unit': 'C'}, 'F')"),
    ("await asyncio.gather(*[tools.add.aio(n) for n in range(5)], tools.add.aio(2, 9))", "[1, 2, 3, 4, 5, 11]"),
    ("tools.weather({'lat': 91})", "ValueError: there is no such place"),
    ("tools.weather(3)", "TypeError: weather(): where is dict, not int"),
    ("tools.add('a')", "TypeError: add(): a is int, not str"),
    ("'lat and lon' in said, 'the second' in said, 'The weather' in said", "(True, True, True)"),
    ("str(tools.add.__signature__)", "'(a: int, b: int | None = 1) -> int'"),
)
assert Weather.begun == 1

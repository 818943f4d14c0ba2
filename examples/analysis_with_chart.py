"""A data analysis with a chart: a file goes in, questions are answered one by one, an image comes out.

python3 analysis_with_chart.py chart.png
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import lair


def sales() -> str:
    """A table of two years, with a rise in it and a bad week."""
    random.seed(1)
    lines = ["day,shop,amount"]
    for day in range(730):
        for shop, level in (("north", 100), ("south", 140)):
            amount = level + day * 0.1 + random.gauss(0, 10) - (80 if 400 <= day < 407 and shop == "south" else 0)
            lines.append(f"{day},{shop},{amount:.2f}")
    return "\n".join(lines)


def ask(session: lair.Session, code: str) -> lair.Result:
    result = session.run(code).raise_for_error()
    print(f">>> {code.strip()}\n{result.text or result.stdout}")
    return result


def main(target: Path) -> None:
    with lair.Session() as session:
        session.put("sales.csv", sales())
        ask(session, "import pandas as pd\ndata = pd.read_csv('sales.csv')\ndata.groupby('shop').amount.describe()")
        ask(session, "weekly = data.assign(week=data.day // 7).pivot_table('amount', 'week', 'shop', 'mean')")
        ask(session, "drop = weekly.diff().stack().idxmin()\nf'the sharpest fall: {drop[1]}, week {drop[0]}'")
        ask(
            session,
            """
import matplotlib.pyplot as plt
axes = weekly.plot(title='sales by week', ylabel='amount')
axes.axvline(drop[0], color='grey', linestyle=':')
plt.savefig('chart.png')
plt.close('all')
""",
        )
        target.write_bytes(session.get("chart.png"))
    print(f"the chart is in {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "chart.png"))

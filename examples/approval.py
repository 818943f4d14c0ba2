"""A person approves what an agent's code wants to do.

Each call of `pay` asks first: the cell waits until somebody has typed an answer, and costs nothing meanwhile. `deploy` puts its
call aside, and is answered later, here by a second program that looks at what waits.

    python3 examples/approval.py
    yes y | python3 examples/approval.py
"""

from __future__ import annotations

import subprocess
import sys

import lair

CODE = """
paid = []
for to, amount in [("the printer", 40), ("the landlord", 900), ("somebody on the internet", 5000)]:
    try:
        paid.append(tools.pay(to, amount))
    except PermissionError as error:
        print(error)
paid
"""

# What somebody would do elsewhere, also by `lair calls` and `lair answer`.
BOSS = """
import time, lair
while not (waiting := [call for call in lair.calls() if call.state == "held"]):
    time.sleep(0.05)
for call in waiting:
    lair.answer_call(call, f"{call.arguments['version']} is out") # or lair.refuse_call(call, "not on a Friday")
"""


def pay(to: str, amount: int) -> str:
    """Pay an amount in euros."""
    return f"{amount} euros to {to}"


def deploy(version: str) -> str:
    """Bring a version out."""
    raise lair.Hold(f"may {version} go out?")


def approve(call: lair.Calling) -> bool | str:
    answer = input(f"{call} — y, or why not: ")
    return answer == "y" or answer


def main() -> None:
    functions = [lair.Function(pay, ask=True, effect=True), deploy]
    with lair.Session(functions=functions, approve=approve) as session:
        result = session.run(CODE)
        print(f"\n{result.stdout}paid: {result.text}")

        boss = subprocess.Popen([sys.executable, "-c", BOSS])
        print("deployed:", session.run("tools.deploy('2.0')").text)
        boss.wait()


if __name__ == "__main__":
    main()

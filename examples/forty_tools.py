"""An agent with forty tools, and one cell that does the work of hundreds of calls.

The tools are functions of this program. A model would be given stubs() in its prompt, about a thousand tokens, and would
look for more with tools.find("words"). Here the cells stand in the place of what a model writes.

    python3 examples/forty_tools.py
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import random
from typing import Annotated, Any, Literal, TypedDict

import lair

Day = Annotated[str, "a date, as 2026-11-23"]
Status = Literal["new", "paid", "sent", "returned"]


class Address(TypedDict):
    street: str
    city: str
    country: str


@dataclasses.dataclass
class Line:
    article: str
    count: int = 1


class Order(TypedDict):
    number: int
    customer: str
    lines: list[Line]
    status: Status
    day: str


# ---- what the tools work on ----

_random = random.Random(7)
CITIES = ["Lisbon", "Oslo", "Graz", "Porto", "Turku"]
ARTICLES = {name: 3 + 4 * n for n, name in enumerate(["tea", "cup", "pot", "tray", "spoon", "sieve"])}
STOCK = {name: _random.randrange(40) for name in ARTICLES}
CUSTOMERS: dict[str, dict[str, Any]] = {
    f"c{n:02}": {"name": f"Customer {n}", "city": CITIES[n % 5], "notes": []} for n in range(40)
}
ORDERS: dict[int, Order] = {
    n: Order(
        number=n,
        customer=f"c{_random.randrange(40):02}",
        lines=[Line(_random.choice(list(ARTICLES)), _random.randrange(1, 6)) for _ in range(3)],
        status=_random.choice(["new", "paid", "sent", "returned"]),
        day=str(datetime.date(2026, 1, 1) + datetime.timedelta(n)),
    )
    for n in range(1, 201)
}
MAILS: list[dict[str, str]] = []
TASKS: list[dict[str, Any]] = []
PAGES = {"returns": "Goods come back within 14 days.", "tides": "High at noon.", "tea": "Boil, wait, pour."}
CALLS = {"n": 0}


# ---- orders ----


def list_orders(status: Status | None = None, customer: str | None = None, limit: int = 50) -> list[int]:
    """Numbers of orders, oldest first."""
    fits = [n for n, it in ORDERS.items() if status in (None, it["status"]) and customer in (None, it["customer"])]
    return fits[:limit]


async def get_order(number: int) -> Order:
    """One order with its lines."""
    CALLS["n"] += 1
    await asyncio.sleep(0.001)  # a database somewhere
    return ORDERS[number]


def create_order(customer: str, lines: list[Line], ship_to: Address | None = None) -> int:
    """Make an order.

    Args:
        customer: whose it is
        lines: what is bought
        ship_to: if not to the customer's own address
    """
    number = max(ORDERS) + 1
    ORDERS[number] = Order(number=number, customer=customer, lines=lines, status="new", day="2026-11-23")
    return number


def cancel_order(number: int, reason: str) -> bool:
    """Cancel an order that is not sent."""
    return ORDERS[number]["status"] != "sent" and bool(ORDERS.pop(number))


def set_order_status(number: int, status: Status) -> None:
    """Change the status of an order."""
    ORDERS[number]["status"] = status


def order_total(number: int) -> float:
    """What an order costs."""
    return sum(ARTICLES[line.article] * line.count for line in ORDERS[number]["lines"])


def orders_between(first: Day, last: Day) -> list[int]:
    """Numbers of orders of these days."""
    return [n for n, it in ORDERS.items() if first <= it["day"] <= last]


def refund(number: int, amount: float, why: str) -> str:
    """Pay money back."""
    return f"refunded {amount} for {number}: {why}"


# ---- customers ----


def list_customers(city: str | None = None) -> list[str]:
    """Ids of customers."""
    return [id for id, it in CUSTOMERS.items() if city in (None, it["city"])]


def get_customer(id: str) -> dict[str, Any]:
    """Name, city and notes of a customer."""
    return CUSTOMERS[id]


def add_customer(name: str, address: Address, mail: str | None = None) -> str:
    """Make a customer."""
    id = f"c{len(CUSTOMERS):02}"
    CUSTOMERS[id] = {"name": name, "city": address["city"], "notes": [], "mail": mail}
    return id


def add_note(customer: str, text: str) -> None:
    """Write a note about a customer."""
    CUSTOMERS[customer]["notes"].append(text)


def find_customers(words: str) -> list[str]:
    """Ids of customers whose names have these words."""
    return [id for id, it in CUSTOMERS.items() if words.lower() in it["name"].lower()]


def merge_customers(keep: str, drop: str) -> None:
    """Make one of two."""
    CUSTOMERS.pop(drop, None)


# ---- stock ----


def list_articles() -> list[str]:
    """All articles."""
    return list(ARTICLES)


def price(article: str) -> float:
    """What an article costs."""
    return ARTICLES[article]


def stock(article: str) -> int:
    """How many there are."""
    CALLS["n"] += 1
    return STOCK[article]


def reserve(article: str, count: int, order: int | None = None) -> bool:
    """Keep some for an order."""
    return STOCK[article] >= count


def restock(article: str, count: int, supplier: str = "main") -> int:
    """Order more of an article; gives how many there will be."""
    STOCK[article] += count
    return STOCK[article]


def set_price(article: str, price: float) -> None:
    """Change a price."""
    ARTICLES[article] = int(price)


# ---- mail, tasks, calendar ----


def send_mail(to: str, subject: str, body: str, attachments: list[str] | None = None) -> int:
    """Send a mail; gives its number."""
    MAILS.append({"to": to, "subject": subject, "body": body})
    return len(MAILS)


def list_mails(to: str | None = None, unread: bool = False) -> list[dict[str, str]]:
    """Mails, newest first."""
    return [it for it in reversed(MAILS) if to in (None, it["to"])]


def create_task(title: str, due: Day | None = None, owner: str = "me", tags: list[str] | None = None) -> int:
    """Write a task down."""
    TASKS.append({"title": title, "due": due, "owner": owner, "tags": tags, "done": False})
    return len(TASKS)


def list_tasks(owner: str | None = None, done: bool = False) -> list[dict[str, Any]]:
    """Tasks that are open, or done."""
    return [it for it in TASKS if it["done"] == done and owner in (None, it["owner"])]


def finish_task(number: int) -> None:
    """A task is done."""
    TASKS[number - 1]["done"] = True


def free_slots(day: Day, minutes: int = 30) -> list[str]:
    """When there is time on a day."""
    return [f"{hour}:00" for hour in (9, 11, 14)]


def book_slot(day: Day, time: str, with_whom: list[str], title: str = "Meeting") -> str:
    """Put a meeting into the calendar."""
    return f"{day} {time}: {title}"


# ---- wiki, files, numbers ----


def search_wiki(words: str, limit: int = 5) -> list[str]:
    """Titles of pages that have these words."""
    return [title for title, text in PAGES.items() if words.lower() in text.lower()][:limit]


def read_page(title: str) -> str:
    """The text of a page."""
    return PAGES[title]


def write_page(title: str, text: str, mode: Literal["replace", "append"] = "replace") -> None:
    """Write a page."""
    PAGES[title] = PAGES.get(title, "") + text if mode == "append" else text


def translate(text: str, to: Literal["de", "fr", "pt", "fi", "no"] = "de") -> str:
    """Translate a text."""
    return f"[{to}] {text}"


def summarize(text: str, words: int = 50) -> str:
    """A text in fewer words."""
    return " ".join(text.split()[:words])


def classify(text: str, labels: list[str]) -> dict[str, float]:
    """How well each label fits a text."""
    return {label: 1 / len(labels) for label in labels}


def exchange_rate(currency: Literal["EUR", "USD", "NOK"], day: Day | None = None) -> float:
    """Of a currency, in euros."""
    return {"EUR": 1.0, "USD": 0.9, "NOK": 0.085}[currency]


def weather(city: str, day: Day | None = None) -> dict[str, float]:
    """Temperature and rain."""
    return {"temperature": 10.0 + len(city), "rain": 0.5}


def distance(a: str, b: str) -> float:
    """Between two cities, in km."""
    return 400.0 * abs(CITIES.index(a) - CITIES.index(b))


def shipping_cost(to: Address, weight: float, express: bool = False) -> float:
    """What it costs to send something."""
    return weight * (4 if express else 2)


def track(parcel: str) -> list[dict[str, str]]:
    """Where a parcel has been."""
    return [{"place": "Graz", "when": "yesterday"}]


def get_report(kind: Literal["sales", "stock", "returns"], year: int = 2026) -> dict[str, float]:
    """Figures of a year."""
    return {"total": 1.0}


def notify_team(text: str, urgent: bool = False) -> None:
    """Write to the team's channel."""


TOOLS = [
    *(list_orders, get_order, create_order, cancel_order, set_order_status, order_total, orders_between, refund),
    *(list_customers, get_customer, add_customer, add_note, find_customers, merge_customers),
    *(list_articles, price, stock, reserve, restock, set_price),
    *(send_mail, list_mails, create_task, list_tasks, finish_task, free_slots, book_slot),
    *(search_wiki, read_page, write_page, translate, summarize, classify, exchange_rate, weather, distance),
    *(shipping_cost, track, get_report, notify_team),
]

# ---- what a model would write ----

LOOK = """
for line in tools.find("order"):
    print(line)
"""

LOOP = """
low = {}
for article in tools.list_articles():
    count = tools.stock(article)
    if count < 15:
        low[article] = tools.restock(article, 15 - count)
low
"""

AT_ONCE = """
import asyncio
from collections import Counter

orders = await asyncio.gather(*[tools.get_order.aio(n) for n in tools.list_orders(limit=200)])
returned = Counter(line["article"] for it in orders if it["status"] == "returned" for line in it["lines"])
article, times = returned.most_common(1)[0]
tools.create_task(f"Why does {article} come back so often?", tags=["returns"])
f"{len(orders)} orders; {article} came back in {times} lines"
"""


def main() -> None:
    with lair.Session(functions=TOOLS) as session:
        prompt = session.stubs()
        print(prompt)
        print(f"\n{len(TOOLS)} tools in {lair.tokens(prompt)} tokens\n")
        for code in (LOOK, LOOP, AT_ONCE):
            result = session.run(code)
            result.raise_for_error()
            print(result.stdout + (result.text or ""))
    print(f"{CALLS['n']} calls, {len(TASKS)} task: {TASKS[0]['title']}")


if __name__ == "__main__":
    main()

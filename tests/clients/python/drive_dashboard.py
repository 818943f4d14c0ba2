"""The dashboard in a real browser: URL, what to do, and more for that. It fails unless all is as it should be."""

import json
import os
import re
import shutil
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

URL = sys.argv[1]
WAIT = 30_000
PICTURES = Path(os.environ["PICTURES"])

expect.set_options(timeout=WAIT)


def opened(browser: Browser, hash_: str = "", **options: object) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}, **options).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(WAIT)
    page.set_default_navigation_timeout(WAIT)
    # Whatever ran here would be seen by all tests.
    page.add_init_script("window.hacked = () => { window.wasHacked = true; }")
    page.on("dialog", lambda dialog: sys.exit(f"a dialog: {dialog.message}"))
    page.on("pageerror", lambda error: sys.exit(f"an error of the page: {error}"))
    page.goto(f"{URL}/{hash_}")
    return page


def session(browser: Browser, name: str) -> Page:
    page = opened(browser, f"#/s/{urllib.parse.quote(name, safe='')}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    return page


def prompt(page: Page) -> Locator:
    return page.get_by_label("Code of the next cell")


def run(page: Page, code: str) -> Locator:
    """Its cell, which has ended."""
    cells = page.locator(".cell")
    n = cells.count()
    prompt(page).fill(code)
    prompt(page).press("Shift+Enter")
    expect(cells).to_have_count(n + 1)
    expect(cells.nth(n)).not_to_have_class(re.compile("running"))
    return cells.nth(n)


def picture(page: Page, name: str) -> None:
    page.screenshot(path=PICTURES / f"{name}.png")


# ---- what is done ----


def sessions(browser: Browser) -> None:
    page = opened(browser)
    rows = page.locator("table.sessions tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("idle")
    expect(rows.nth(0)).to_contain_text(re.compile(r"\d+ MB"))
    page.get_by_role("button", name="New session").click()
    page.get_by_label("Name", exact=True).fill("three")
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("three")
    expect(page.locator(".pill").first).to_have_text("idle")
    page.get_by_role("link", name="Sessions").click()
    expect(rows).to_have_count(3)
    # A row stays the same element while its numbers change.
    rows.nth(1).evaluate("row => { row.marked = true; }")
    page.get_by_role("link", name="three").click()
    page.get_by_role("button", name="Shut down…", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Shut down").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="New session").click()
    page.get_by_label("Name", exact=True).fill("x")
    page.get_by_label("Profile").fill("none such")
    page.get_by_role("button", name="Begin").click()
    expect(page.locator(".note.bad")).to_contain_text("none such")


def cells(browser: Browser) -> None:
    page = session(browser, "cells")
    expect(page.get_by_text("There is no session of this name now")).to_be_visible()
    expect(run(page, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")).to_contain_text(
        re.compile("out.*err.*42", re.S)
    )
    prompt(page).fill("name = input('Who? ')\nname * 2")
    page.get_by_role("button", name="Run").click()
    page.get_by_label("Who?").fill("Ann")
    page.keyboard.press("Enter")
    expect(page.locator(".cell").nth(1)).to_contain_text("'AnnAnn'")
    failed = run(page, "1 / 0")
    expect(failed.locator(".failure")).to_contain_text("ZeroDivisionError: division by zero")
    failed.get_by_text("Traceback", exact=True).click()
    expect(failed.locator(".trace")).to_contain_text("<cell 3>")
    expect(run(page, "open('/etc/hosts', 'w')")).to_contain_text("write-outside-workspace")
    table = run(page, "import pandas as pd; pd.DataFrame({'n': [1, 20], 'x': [0.5, 1.25], 'word': ['a', 'b']})")
    expect(table.locator("tbody tr")).to_have_text(["010.50a", "1201.25b"])
    figure = run(page, "import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()")
    figure.locator("img").wait_for()
    page.wait_for_function("img => img.naturalWidth > 100", arg=figure.locator("img").element_handle())
    html = run(page, "class H:\n    def _repr_html_(self): return '<h3>Hello</h3>' * 3\nH()")
    expect(html.frame_locator("iframe").locator("h3").first).to_have_text("Hello")
    page.wait_for_function("frame => frame.clientHeight > 60", arg=html.locator("iframe").element_handle())
    assert "rolled" not in page.inner_text("body")
    expect(run(page, "import os; os._exit(9)")).to_contain_text(
        "the session was rolled back to the state after cell 7"
    )
    # Several lines, their indentation, and completion.
    prompt(page).fill("")
    prompt(page).press_sequentially("for i in range(2):\nprin")
    prompt(page).press("Tab")
    expect(prompt(page)).to_have_value("for i in range(2):\n    print")
    prompt(page).fill("sys.std")
    prompt(page).press("Tab")
    expect(page.get_by_role("option")).to_have_count(4)
    picture(page, "completion")
    prompt(page).press("ArrowDown")
    prompt(page).press("Enter")
    expect(prompt(page)).to_have_value("sys.stdin")
    prompt(page).fill("")
    prompt(page).press("ArrowUp")
    expect(prompt(page)).to_have_value("import os; os._exit(9)")
    # What was there is there again.
    page.reload()
    expect(page.locator(".cell")).to_have_count(8)
    expect(page.locator(".cell").nth(1)).to_contain_text("'AnnAnn'")
    page.get_by_role("tab", name="Blocked").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("write-outside-workspace")
    page.get_by_role("tab", name="Variables").click()
    expect(page.locator(".variables tbody tr").filter(has_text="name")).to_contain_text("'Ann'")
    # One that runs is interrupted.
    prompt(page).fill("while True: pass")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Interrupt").click()
    expect(page.locator(".cell").nth(8)).to_contain_text("KeyboardInterrupt")
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    expect(run(page, "name")).to_contain_text("NameError")


def queue(browser: Browser) -> None:
    """More cells at once than a browser has connections."""
    page = session(browser, "queue")
    expect(page.locator("#link")).to_have_text("live")
    codes = ["import time; time.sleep(2); n = 0", *["n += 1; n"] * 8, "print(int(input('n? ')) + n)"]
    for code in codes:
        prompt(page).fill(code)
        prompt(page).press("Shift+Enter")
    expect(page.locator(".cell")).to_have_count(10)
    expect(page.locator(".cell").nth(9)).to_contain_text("waits")
    page.get_by_label("n?").fill("5")
    page.keyboard.press("Enter")
    expect(page.locator(".cell").nth(9)).to_contain_text("13")
    expect(page.locator(".gutter")).to_have_text([str(i) for i in range(1, 11)])


def flood(browser: Browser) -> None:
    """The end of a flood is shown, and the page goes on."""
    page = session(browser, "flood")
    expect(page.locator("#link")).to_have_text("live")
    it = run(
        page, "for i in range(1_000_000): print('line', i)\nprint('all')\nfor i in range(400): display(i)\n1 / 0"
    )
    expect(it).to_contain_text("all")
    expect(it).to_contain_text("ZeroDivisionError")
    assert it.locator(".outputs > *").count() < 330
    assert page.evaluate("document.body.innerText.length") < 3_000_000
    expect(run(page, "6 * 7")).to_contain_text("42")


def load(browser: Browser) -> None:
    page = opened(browser)
    plot = page.locator(".plot").filter(has_text="Cells a second")
    plot.locator("canvas").wait_for()
    page.wait_for_function(
        """() => {
            const canvas = document.querySelector(".plot canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return data.some((it, i) => i % 4 === 3 && it > 0);
        }"""
    )
    expect(page.locator(".plot").filter(has_text="Sessions").locator("b")).to_have_text("1")
    expect(page.locator(".plot").filter(has_text="Memory").locator("b")).to_have_text(re.compile(r"\d+ (K|M)B"))
    picture(page, "load")


def theirs(browser: Browser) -> None:
    page = session(browser, "theirs")
    expect(page.locator(".cell").nth(1)).to_contain_text("slowly")
    expect(page.locator(".pill").first).to_have_text("running")
    page.get_by_role("button", name="Interrupt").click()
    expect(page.locator(".cell").nth(1)).to_contain_text("KeyboardInterrupt")
    expect(page.locator(".cell").nth(1).locator(".code")).to_contain_text("time.sleep(600)")


def tree(browser: Browser) -> None:
    page = session(browser, "tree")
    states = page.locator(".state")
    expect(states).to_have_count(5)
    expect(states.nth(4)).to_contain_text("now")
    page.get_by_role("button", name="Undo the last cell").click()
    expect(states.nth(3)).to_contain_text("now")
    expect(run(page, "x")).to_contain_text("3")
    expect(states).to_have_count(6)
    states.nth(1).click()
    page.get_by_role("button", name="Go back to this state").click()
    expect(states.nth(1)).to_contain_text("now")
    expect(run(page, "x")).to_contain_text("1")
    page.get_by_role("button", name="Keep this state").click()
    page.get_by_label("Name", exact=True).fill("good")
    page.get_by_role("dialog").get_by_role("button", name="Keep").click()
    expect(states.filter(has_text="good")).to_have_count(1)
    # Three have grown from where another did: each has a lane of its own.
    lanes = page.evaluate(
        "new Set([...document.querySelectorAll('.graph circle.dot, .graph rect.dot')].map(it => it.getAttribute('cx') ?? it.getAttribute('x'))).size"
    )
    assert lanes >= 3, lanes
    picture(page, "tree")
    states.nth(2).click()
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(states).to_have_count(6)
    states.nth(3).click()
    page.get_by_role("button", name="Branch from here").click()
    page.get_by_label("Name of the new session").fill("other")
    page.get_by_role("dialog").get_by_role("button", name="Branch").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("other")
    expect(page.locator(".cell")).not_to_have_count(0)
    expect(run(page, "x")).to_contain_text("4")


def changes(browser: Browser) -> None:
    page = session(browser, "changes")
    run(page, "x = 1; gone = [1]; open('a', 'w').write('1')")
    run(page, "import os; x = 2; y = 'new'; del gone; os.rename('a', 'b'); open('c', 'w').write('<b>')")
    page.get_by_role("tab", name="Changes").click()
    variables = page.get_by_role("table", name="Variables").locator("tbody tr")
    expect(variables.filter(has_text="x")).to_have_text(["changedx1 → 2"])
    expect(variables.filter(has_text="y")).to_contain_text(["new"])
    expect(variables.filter(has_text="gone")).to_contain_text(["[1]"])
    files = page.get_by_role("table", name="Files").locator("tbody tr")
    expect(files.filter(has_text="c")).not_to_have_count(0)
    picture(page, "changes")
    # Between two states that are chosen, and from one that is chosen in the tree.
    page.get_by_label("Until").select_option(label="After cell 1")
    page.get_by_label("Since").select_option(label="After cell 1")
    expect(page.get_by_text("Nothing differs between these two states.")).to_be_visible()
    page.get_by_label("Until").select_option(label="Now")
    expect(variables).not_to_have_count(0)
    page.get_by_role("tab", name="Checkpoints").click()
    page.locator(".state", has_text="After cell 1").click()
    page.get_by_role("button", name="What has changed since").click()
    expect(page.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_label("Since")).to_have_value("1")
    expect(variables.filter(has_text="x")).to_have_text(["changedx1 → 2"])


def deleting(browser: Browser) -> None:
    page = session(browser, "deleting")
    run(
        page,
        "import os; os.mkdir('d'); [open(f, 'w').close() for f in ('a \\'\"\\\\ü🐍.txt', 'd/b', 'kept')]; None",
    )
    page.get_by_role("tab", name="Files").click()
    rows = page.get_by_role("tabpanel").locator("tbody tr")
    expect(rows).to_have_count(3)
    picture(page, "files")
    for which in ("a ", "d"):
        page.get_by_role("button", name=f"Delete {which}").first.click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(rows.filter(has_text=which if which == "a " else "d/")).to_have_count(0)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("kept")
    page.get_by_role("tab", name="Checkpoints").click()
    page.get_by_role("button", name="Undo the last cell").click()
    page.get_by_role("tab", name="Files").click()
    expect(rows.filter(has_text="d/")).to_have_count(1)
    # A session, from the first page.
    page.get_by_role("link", name="Sessions").click()
    sessions = page.locator("table.sessions tbody tr")
    expect(sessions).to_have_count(1)
    picture(page, "overview")
    page.get_by_role("button", name="Shut down deleting").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(sessions).to_have_count(1)
    page.get_by_role("button", name="Shut down deleting").click()
    page.get_by_role("dialog").get_by_role("button", name="Shut down").click()
    expect(page.get_by_role("heading", name="No sessions")).to_be_visible()


def files(browser: Browser) -> None:
    page = session(browser, "papers")
    page.get_by_role("tab", name="Files").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.locator("tbody tr")).to_have_count(2)
    with page.expect_download() as download:
        panel.get_by_role("button", name="a.txt", exact=True).click()
    assert Path(download.value.path()).read_text() == "hello"
    assert download.value.suggested_filename == "a.txt"
    panel.get_by_role("button", name="more/").click()
    expect(panel.locator("tbody tr")).to_contain_text(["deep.txt"])
    page.get_by_label("Files to upload").set_input_files(
        [{"name": "new ü.bin", "mimeType": "application/octet-stream", "buffer": bytes(range(256)) * 5000}]
    )
    expect(panel.locator("tbody tr")).to_have_count(2)
    expect(run(page, "len(open('more/new ü.bin', 'rb').read())")).to_contain_text("1280000")
    panel.get_by_role("button", name="workspace").click()
    expect(panel.locator("tbody tr").first).to_contain_text("more")
    written = run(page, "open('result.csv', 'w').write('1,2')")
    with page.expect_download() as download:
        written.get_by_role("button", name="result.csv").click()
    assert Path(download.value.path()).read_text() == "1,2"


def calls(browser: Browser) -> None:
    page = opened(browser)
    call = page.get_by_role("article", name="Call of pay")
    expect(call).to_contain_text('"Ann"')
    expect(page.locator("#link")).to_have_text("1 call asks for approval")
    picture(page, "approval")
    call.get_by_role("button", name="Approve").click()
    expect(call).to_contain_text('"Bob"')
    call.get_by_role("button", name="Refuse").click()
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("dialog").get_by_role("button", name="Refuse").click()
    expect(call).to_have_count(0)
    expect(page.locator("#link")).to_have_text("live")


def unharmed(page: Page) -> None:
    assert not page.evaluate("Boolean(window.wasHacked)")
    for frame in page.frames:
        assert frame.evaluate("document.querySelectorAll('script:not([src^=\"/dashboard/\"])').length") in (
            0,
            1,
        ), frame.url
        assert not frame.evaluate("Boolean(window.wasHacked)")
    assert page.locator("script:not([src^='/dashboard/'])").count() == 0
    assert page.locator("[onerror], [onload], [src=x]").count() == 0
    assert page.url.startswith(URL)


def hostile_call(browser: Browser) -> None:
    page = opened(browser)
    call = page.get_by_role("article", name="Call of pay")
    expect(call).to_contain_text("<img src=x onerror=hacked()>")
    unharmed(page)
    call.get_by_role("button", name="Approve").click()
    expect(call).to_have_count(0)


def hostile(browser: Browser) -> None:
    name = sys.argv[3]
    page = opened(browser)
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    cell = page.locator(".cell").first
    expect(cell.locator(".out").first).to_contain_text("<script>hacked()</script>")
    expect(cell.locator(".failure")).to_contain_text("<img src=x onerror=hacked()>")
    frame = cell.frame_locator("iframe").first
    expect(frame.get_by_text("it is shown")).to_be_visible()
    assert cell.locator("iframe").count() == 2
    # A link and a form of the output lead nowhere.
    frame.get_by_text("click", exact=True).click()
    frame.get_by_role("button", name="send").click()
    expect(cell.locator("img").first).to_be_visible()
    for tab in ("Variables", "Files", "Changes", "Blocked", "Checkpoints"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).to_contain_text("onerror")
    states = page.locator(".state").filter(has_text="onerror=hacked()>")
    states.last.click()
    expect(page.locator(".chosen")).to_be_visible()
    picture(page, "hostile")
    unharmed(page)
    # Nothing in the frame sees the page, and it covers nothing of it.
    inner = page.frames[1]
    assert inner.evaluate("window.origin") == "null"
    box = cell.locator("iframe").nth(1).bounding_box()
    assert box and box["height"] <= 640
    assert all(url.startswith((URL, "data:", "about:", "blob:")) for url in asked), asked
    assert not any("/health" in url for url in asked)


def keyboard(browser: Browser) -> None:
    page = opened(browser)
    expect(page.get_by_role("link", name="keys")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    for _ in range(12):
        if page.evaluate("document.activeElement.textContent") == "keys":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("keys")
    page.get_by_role("tab", name="Checkpoints").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Variables")).to_be_focused()
    expect(page.get_by_role("tabpanel")).to_contain_text("x")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="After cell 1").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chosen")).to_be_visible()
    expect(page.get_by_role("button", name="After cell 1")).to_be_focused()
    prompt(page).focus()
    page.keyboard.type("x + 1")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".cell").nth(1)).to_contain_text("2")
    # Tab writes; Escape lets it go on.
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Run")).to_be_focused()


NAMELESS = """() => [...document.querySelectorAll("button, input, textarea, a, iframe, img, meter, [tabindex='0'], [role]")]
    .filter((it) => it.offsetParent !== null && !it.getAttribute("aria-label") && !it.getAttribute("aria-labelledby") && !it.title
        && it.alt === undefined && !it.textContent.trim() && !it.closest("label"))
    .map((it) => it.outerHTML.slice(0, 120))"""


def names(browser: Browser) -> None:
    page = opened(browser)
    expect(page.get_by_role("link", name="named")).to_be_visible()
    assert page.evaluate(NAMELESS) == []
    page.get_by_role("link", name="named").click()
    page.locator(".cell img").wait_for()
    assert page.locator(".cell img").get_attribute("alt")
    for tab in ("Variables", "Files", "Changes", "Blocked", "Checkpoints"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate(NAMELESS) == []
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    twice = page.evaluate(
        "(() => { const ids = [...document.querySelectorAll('[id]')].map(it => it.id); return ids.length - new Set(ids).size })()"
    )
    assert twice == 0


CONTRAST = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const light = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((it) => it / 255)
            .map((it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        for (; node; node = node.parentElement) {
            const colour = getComputedStyle(node).backgroundColor;
            if (!/(, 0\\)|transparent|\\/ 0\\))/.test(colour)) return colour;
        }
        return "white";
    };
    return [...document.querySelectorAll("h1, dt, dd, button, small, .pill, .caption, .code, .out, th, td, a, .tag")]
        .filter((it) => it.offsetParent && it.textContent.trim() && !it.disabled)
        .map((it) => {
            const [a, b] = [light(getComputedStyle(it).color), light(behind(it))].sort((x, y) => y - x);
            return [(a + 0.05) / (b + 0.05), it.className || it.tagName, it.textContent.slice(0, 20)];
        })
        .filter(([it]) => it < 3.5);
}"""


def themes(browser: Browser) -> None:
    for scheme in ("light", "dark"):
        page = opened(browser, "#/s/paint", color_scheme=scheme)
        expect(page.locator(".cell")).to_contain_text("2")
        assert page.evaluate(CONTRAST) == []
        picture(page, scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    button = page.get_by_role("button", name="Theme")
    button.click()
    expect(button).to_have_text("Theme: light")
    assert page.evaluate(ground) != dark
    page.reload()
    expect(button).to_have_text("Theme: light")
    assert page.evaluate(ground) != dark
    button.click()
    assert page.evaluate(ground) == dark


def away(browser: Browser) -> None:
    page = session(browser, "away")
    link = page.locator("#link")
    expect(link).to_have_text("live")
    page.context.set_offline(True)
    expect(link).to_have_text("no answer")
    prompt(page).fill("2 + 2")
    prompt(page).press("Shift+Enter")
    expect(page.locator(".cell").nth(1)).to_contain_text("The server does not answer.")
    page.context.set_offline(False)
    expect(link).to_have_text("live")
    expect(run(page, "3 + 3")).to_contain_text("6")


def token(browser: Browser) -> None:
    page = opened(browser, "#/s/mine")
    field = page.get_by_label("Token")
    field.fill("lair_wrong")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("The one that was given is not known.")).to_be_visible()
    picture(page, "token")
    field.fill(sys.argv[3])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("mine")
    expect(run(page, "print('streamed'); open('a.txt', 'w').write('hello')")).to_contain_text("streamed")
    with page.expect_download() as download:
        page.locator(".cell").get_by_role("button", name="a.txt").click()
    assert Path(download.value.path()).read_text() == "hello"
    page.reload()
    expect(page.locator(".cell")).to_contain_text("streamed")
    assert page.context.cookies() == []
    assert page.evaluate("localStorage.length") == 0
    assert sys.argv[3] not in page.content()
    # In another tab nobody is signed in.
    other = page.context.new_page()
    other.goto(URL)
    expect(other.get_by_label("Token")).to_be_visible()


# What a page tries, each in its turn; it tells of what it could read.
TRIES = r"""async ([url, session]) => {
  const at = `${url}/v1/sessions/${session}`;
  const code = JSON.stringify({ code: "open('hit', 'a').write('x')" });
  const json = { "Content-Type": "application/json" };
  const told = [];
  const ask = async (...what) => {
    try {
      const answer = await fetch(...what);
      told.push(answer.type === "opaque" ? "opaque" : answer.status);
    } catch {
      told.push("refused");
    }
  };
  await ask(`${at}/exec`, { method: "POST", headers: json, body: code });
  await ask(`${at}/calls/1`, { method: "POST", headers: json, body: JSON.stringify({ approve: true }) });
  await ask(`${at}/file?path=hit`, { method: "PUT", body: "x" });
  await ask(at, { method: "DELETE" });
  await ask(`${url}/v1/sessions`);
  for (const referrerPolicy of ["no-referrer", "unsafe-url"])
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      await ask(`${at}/exec`, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body: code, referrerPolicy });
      await ask(`${url}/execute`, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body: code, referrerPolicy });
    }
  await ask(`${url}/contexts`, { mode: "no-cors" });
  navigator.sendBeacon(`${at}/exec`, code);
  for (const path of ["/contexts", "/v1/sessions"]) {
    const image = new Image();
    image.src = url + path;
    await new Promise((done) => (image.onload = image.onerror = done));
  }
  await new Promise((done) => {
    const events = new EventSource(`${at}/cells/1?input=true&calls=true`);
    events.onopen = () => (told.push("events"), events.close(), done());
    events.onerror = () => (events.close(), done());
  });
  await new Promise((done) => {
    const socket = new WebSocket(url.replace("http", "ws") + "/v1/sessions");
    socket.onopen = () => (told.push("socket"), done());
    socket.onerror = done;
  });
  const frame = document.createElement("iframe");
  frame.name = "form";
  document.body.append(frame);
  for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: `${at}/exec`, enctype, target: "form" });
    const field = document.createElement("input");
    Object.assign(field, { name: '{"code": "open(\'hit\', \'a\').write(\'x\')", "a": "', value: '"}' });
    form.append(field);
    document.body.append(form);
    const done = new Promise((loaded) => (frame.onload = loaded));
    form.submit();
    await done;
  }
  return told;
}"""


def other_page(browser: Browser) -> None:
    """Of the address in argv[3]: what it may do with the session argv[4], as JSON."""
    page = browser.new_page()
    page.set_default_timeout(WAIT)
    page.goto(sys.argv[3])
    print(json.dumps(page.evaluate(TRIES, [URL, sys.argv[4]])))


def linked(browser: Browser) -> None:
    """A link of another page opens the dashboard."""
    page = browser.new_page()
    page.set_default_timeout(WAIT)
    page.goto(sys.argv[3])
    page.set_content(f'<a href="{URL}">here</a>')
    page.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("window.origin") == URL


SCENES: dict[str, Callable[[Browser], None]] = {
    it.__name__: it
    for it in (
        sessions,
        cells,
        queue,
        flood,
        load,
        theirs,
        tree,
        changes,
        deleting,
        files,
        calls,
        hostile_call,
        hostile,
        keyboard,
        names,
        themes,
        token,
        away,
        other_page,
        linked,
    )
}


def main() -> None:
    path = shutil.which("chromium-headless-shell")
    assert path, "there is a browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        SCENES[sys.argv[2]](browser)
        browser.close()


if __name__ == "__main__":
    main()

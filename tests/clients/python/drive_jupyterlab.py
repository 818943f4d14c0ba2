"""JupyterLab in a real browser: cells, an error that kills, what comes back, a slider that moves a plot.

Without arguments it is the server, and prints where; with that address it is the person, who may take a picture."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Error, Page, sync_playwright

HERE = Path.home() / "lab"
BROWSER = shutil.which("chromium-headless-shell")
WAIT = 60_000
BEGUN = "prompt => prompt.innerText.trim() !== '[ ]:'"

CELLS = [
    "x = 41\nprint('hello from', 'Lair')",
    "x + 1",
    "import os\nos._exit(9)",
    "x",
    "%undo",
    "import ipywidgets\nimport matplotlib.pyplot as plt\n\n"
    "@ipywidgets.interact(n=ipywidgets.IntSlider(value=2, min=1, max=6))\n"
    "def draw(n):\n    plt.figure(figsize=(5, 1.5))\n    plt.bar(range(n), range(1, n + 1))\n    plt.show()\n    print('n is', n)",
    "1 / 0",
]


def answering(file: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        url: str = json.loads(file.read_text())["url"]
        urllib.request.urlopen(url + "api/status").read()
        return url
    return None


@contextlib.contextmanager
def server() -> Iterator[str]:
    options = ["--no-browser", "--port=0", "--ServerApp.token=", "--ServerApp.password=", "--allow-root"]
    command = [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={HERE}"]
    log = (HERE / "log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    runtime = Path(os.environ["JUPYTER_RUNTIME_DIR"])
    try:
        deadline = time.monotonic() + 180
        while not (url := answering(runtime / f"jpserver-{process.pid}.json")):
            assert time.monotonic() < deadline and process.poll() is None, (HERE / "log").read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def cell(page: Page, number: int) -> Any:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(number)


def run(page: Page, number: int, *expected: str) -> None:
    """JupyterLab drops the key while the kernel connects."""
    it = cell(page, number)
    prompt = it.locator(".jp-InputPrompt")
    for _ in range(10):
        it.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        with contextlib.suppress(Error):
            page.wait_for_function(BEGUN, arg=prompt.element_handle(), timeout=3_000)
            break
    for text in expected:
        it.locator(".jp-OutputArea").get_by_text(text, exact=False).first.wait_for(timeout=WAIT)


def serve() -> None:
    """Until standard input ends."""
    HERE.mkdir(exist_ok=True)
    with server() as url:
        print(url, flush=True)
        sys.stdin.read()


def drive(url: str, picture: str | None = None) -> None:
    it = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "lair", "display_name": "Python (Lair)"}})
    it.cells = [nbformat.v4.new_code_cell(code) for code in CELLS]
    nbformat.write(it, HERE / "n.ipynb")
    assert BROWSER, "there is a browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 1500})
        page.set_default_timeout(WAIT)
        page.goto(url + "lab/tree/n.ipynb?reset")
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=WAIT)
        run(page, 0, "hello from Lair")
        run(page, 1, "42")
        run(page, 2, "The session was rolled back to the state after cell 2")
        run(page, 3, "41")
        run(page, 4, "The session is in the state after cell")
        run(page, 5, "n is 2")
        output = cell(page, 5)
        output.locator("img").first.wait_for(timeout=WAIT)
        before = output.locator("img").first.get_attribute("src")
        handle = output.locator(".noUi-handle").first
        handle.focus()
        page.keyboard.press("ArrowRight")
        output.get_by_text("n is 3").first.wait_for(timeout=WAIT)
        page.wait_for_function(
            "before => { const img = document.querySelectorAll('.jp-CodeCell')[5].querySelector('img');"
            " return img && img.src !== before }",
            arg=before,
            timeout=WAIT,
        )
        assert output.locator("img").count() == 1
        run(page, 6, "ZeroDivisionError")
        if picture:
            page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    drive(*sys.argv[1:]) if len(sys.argv) > 1 else serve()

"""Charts of plotly, altair and PIL, from the package index, in sessions whose Python has them and not IPython: what is
shown is what their own representations give."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from daemon import Daemon
from environments import pinned
from lair import Client, ExecReply

PLOTLY = "application/vnd.plotly.v1+json"
FIGURE = "import plotly.graph_objects as go\nfigure = go.Figure(go.Scatter(y=[1, 3, 2]))\n"
CHART = (
    "import altair as alt\n"
    "chart = alt.Chart(alt.Data(values=[{'a': 1, 'b': 7}])).mark_bar().encode(x='a:Q', y='b:Q')\n"
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"python": str(pinned("charts"))}})
    yield it
    assert it.terminate() == 0
    it.close()


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    client = daemon.client()
    assert client.exec("import importlib.util as u; u.find_spec('IPython')", "charts").text is None
    client.exec(FIGURE + CHART, "charts")
    return client


def run(client: Client, code: str) -> ExecReply:
    reply = client.exec(code, "charts")
    assert (reply.returncode, reply.stdout, reply.stderr) == (0, b"", b""), reply.stderr.decode()
    return reply


def shown(client: Client, code: str) -> dict[str, Any]:
    (display,) = run(client, code).displays or []
    return dict(display["data"])


def is_the_figure(data: dict[str, Any]) -> bool:
    told = json.loads(data[PLOTLY])
    return [told["data"][0][key] for key in ("type", "y")] == ["scatter", [1, 3, 2]]


def test_plotly(client: Client) -> None:
    reply = run(client, "figure")
    assert reply.text is not None and reply.text.startswith("Figure({\n    'data': [{'type': 'scatter'")
    assert reply.data is not None and reply.data.keys() == {PLOTLY, "text/html"}
    assert is_the_figure(reply.data) and "Plotly.newPlot(" in reply.data["text/html"]


@pytest.mark.parametrize("code", ["display(figure)", "figure.show()", "import plotly.io as pio; pio.show(figure)"])
def test_plotly_shows(client: Client, code: str) -> None:
    data = shown(client, code)
    assert data.keys() == {PLOTLY, "text/html", "text/plain"} and is_the_figure(data)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("pio.show(figure.to_dict())", PLOTLY),
        ("figure.show(width=300)", PLOTLY),
        ("figure.show('vscode')", PLOTLY),
        ("figure.show('colab')", "text/html"),
        ("figure.show('json')", "application/json"),
    ],
)
def test_plotly_shows_as_it_is_told_to(client: Client, code: str, kind: str) -> None:
    """Without what it asks of a notebook."""
    data = shown(client, f"import plotly.io as pio\n{code}")
    assert data.keys() == {kind, "text/plain"} and "scatter" in data[kind] and "scatter" in data["text/plain"]


@pytest.mark.parametrize(
    ("renderer", "said"),
    [
        ("browser", "could not locate runnable browser"),
        ("firefox", "locate a browser"),
        ("notebook", "requires ipython"),
        ("png", "requires the Kaleido package"),
        ("nonsense", "Invalid named renderer"),
    ],
)
def test_plotly_says_what_it_cannot(client: Client, renderer: str, said: str) -> None:
    reply = client.exec(f"figure.show('{renderer}')", "charts", timeout=20)
    assert reply.cause == "error" and reply.displays is None
    assert reply.error is not None and said in " ".join(reply.error["value"].split()), reply.error


def test_altair(client: Client) -> None:
    reply = run(client, "chart")
    assert reply.text == "alt.Chart(...)"
    assert reply.data is not None and reply.data.keys() == {"text/html"}
    assert "vegaEmbed" in reply.data["text/html"] and '{"a": 1, "b": 7}' in reply.data["text/html"]


def test_altair_as_vega_lite(client: Client) -> None:
    data = shown(client, "with alt.renderers.enable('mimetype'): chart.show()")
    (spec,) = [json.loads(given) for kind, given in data.items() if kind.startswith("application/vnd.vegalite.")]
    assert spec["mark"] == {"type": "bar"}


@pytest.mark.parametrize("code", ["display(chart)", "chart.show()", "(chart | chart).show()"])
def test_altair_shows(client: Client, code: str) -> None:
    data = shown(client, code)
    assert data.keys() == {"text/html", "text/plain"} and "vegaEmbed" in data["text/html"]


def test_pil(client: Client) -> None:
    reply = run(client, "from PIL import Image\nImage.new('RGB', (30, 20), 'red')")
    assert reply.data is not None
    assert struct.unpack(">II", reply.data["image/png"][16:24]) == (30, 20)
    assert "image/png" in shown(client, "Image.new('RGB', (30, 20), 'red').show()")

"""Libraries with pools of threads, from the package index: they go on after undo, a roll-back and in a branch."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from daemon import Daemon
from environments import pinned
from lair import Client, ExecReply

THREADS = "len(__import__('os').listdir('/proc/self/task'))"
KILL = "import os; os.kill(os.getpid(), 9)"
NUMBA = """
import os; os.environ["NUMBA_THREADING_LAYER"] = "{layer}"
import numba, numpy as np
@numba.njit(parallel=True)
def f(x):
    s = 0.0
    for i in numba.prange(len(x)): s += x[i]
    return s
x = np.ones(100000); f(x); assert numba.threading_layer() == "{layer}"
"""

# What begins a pool, and what uses it.
LIBRARIES = {
    "polars": (
        "import polars as pl; df = pl.DataFrame({'a': range(100000)})",
        "df.group_by(pl.col('a') % 10).len().height",
    ),
    "duckdb": (
        "import duckdb; c = duckdb.connect(); c.sql('create table t as select range r from range(300000)')",
        "c.sql('select sum(r) from t').fetchall()",
    ),
    "pyarrow": (
        "import numpy as np, pyarrow as pa\n" "t = pa.table({'a': np.arange(10**5) % 100, 'b': np.arange(10**5)})",
        "t.group_by('a').aggregate([('b', 'sum')]).column('b_sum').to_pylist()[:3]",
    ),
    "OpenBLAS": (
        "import numpy as np, threadpoolctl; threadpoolctl.threadpool_limits(4, 'blas'); a = np.ones((600, 600))",
        "float((a @ a)[0, 0])",
    ),
    "scikit-learn": (
        "import numpy as np, sklearn.ensemble as se, threadpoolctl\n"
        "threadpoolctl.threadpool_limits(4); X = np.arange(20000.0).reshape(4000, 5)",
        "round(se.HistGradientBoostingRegressor(max_iter=2).fit(X, X[:, 0]).score(X, X[:, 0]), 3)",
    ),
    "numba": (NUMBA.format(layer="omp"), "float(f(x))"),
    "numba's own": (NUMBA.format(layer="workqueue"), "float(f(x))"),
    "OpenCV": (
        "import cv2, numpy as np; cv2.setNumThreads(4); im = np.zeros((1000, 1000, 3), 'uint8'); im[5, 5] = 255",
        "int(cv2.GaussianBlur(im, (31, 31), 3).sum())",
    ),
    "tqdm": (
        "import tqdm; tqdm.tqdm.monitor_interval = 0.05",
        "sum(tqdm.tqdm(range(10))), tqdm.tqdm.monitor.is_alive()",
    ),
}


# A training step, with threads of autograd and of OpenMP.
TORCH = (
    "import torch; torch.set_num_threads(4); torch.manual_seed(1)\n"
    "model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))\n"
    "data = torch.randn(4096, 64, requires_grad=True)\n"
    "def step():\n"
    "    data.grad = None; loss = (model(data) ** 2).mean(); loss.backward(); return round(float(data.grad.norm()), 6)",
    "step()",
)


def served(environment: str) -> Iterator[Daemon]:
    it = Daemon({"profile default": {"python": str(pinned(environment)), "checkpoint": "cell", "memory": "4G"}})
    yield it
    assert it.terminate() == 0
    it.close()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    yield from served("pools")


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    return daemon.client()


def run(client: Client, code: str, session: str) -> ExecReply:
    reply = client.exec(code, session)
    assert (reply.returncode, reply.state, reply.unfaithful) == (0, "kept", None), reply.stderr.decode()
    return reply


@pytest.mark.parametrize("name", LIBRARIES)
def test_goes_on(client: Client, name: str) -> None:
    goes_on(client, name.replace(" ", "-").replace("'", ""), *LIBRARIES[name])


@pytest.mark.skipif("LAIR_TORCH" not in os.environ, reason="LAIR_TORCH=1 runs it: 2 GB are downloaded")
def test_torch_goes_on() -> None:
    for daemon in served("torch"):
        goes_on(daemon.client(timeout=120), "torch", *TORCH)


def goes_on(client: Client, session: str, begin: str, use: str) -> None:
    run(client, begin, session)
    first = run(client, use, session).text
    assert int(run(client, THREADS, session).text or 0) > 1
    for _ in range(5):
        assert run(client, use, session).text == first
        client.undo(session)
        assert run(client, use, session).text == first
        before = run(client, "1", session).cell
        killed = client.exec(KILL, session)
        assert (killed.state, killed.restored) == ("rolled_back", before)
        client.branch(session, "branch")
        assert run(client, use, "branch").text == first
        client.shutdown("branch")
    assert run(client, use, session).text == first
    client.shutdown(session)

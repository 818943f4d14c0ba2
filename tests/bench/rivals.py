"""What Lair is measured against: a Jupyter kernel, a child process behind two queues, and one that forks itself."""

from __future__ import annotations

import multiprocessing as mp
import os
import queue
import signal
import time
from multiprocessing.connection import Connection
from typing import Any, Callable

from jupyter_client.manager import start_new_kernel

os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or every kernel prints a warning

Sample = float  # seconds


def timed(act: Callable[[], Any]) -> Sample:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


class Jupyter:
    """A kernel, ipykernel if nothing else is said, through the client library everybody uses."""

    def __init__(self, kernel: str = "python3") -> None:
        self.manager: Any
        self.client: Any
        self.manager, self.client = start_new_kernel(kernel_name=kernel)

    def run(self, code: str, timeout: float = 120) -> int:
        """Run a cell to its end; how many bytes of output came. A flood drops messages, even the last one."""
        sent = self.client.execute(code)
        received, replied, idle = 0, False, False
        while not replied:
            replied = self.client.get_shell_msg(timeout=timeout)["parent_header"].get("msg_id") == sent
        while not idle:
            try:
                message = self.client.get_iopub_msg(timeout=2)
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "stream":
                received += len(message["content"]["text"])
            idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
        return received

    def restart(self, now: bool = True) -> None:
        self.manager.restart_kernel(now=now)
        self.client.wait_for_ready(timeout=60)
        self.run("1+1")

    def interrupt(self) -> Sample:
        sent = self.client.execute("while True: pass")
        time.sleep(0.1)
        began = time.perf_counter()
        self.manager.interrupt_kernel()
        while self.client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != sent:
            pass
        took = time.perf_counter() - began
        self.run("1")
        return took

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def jupyter_open(code: str, name: str = "python3") -> Sample:
    """From nothing to the first result."""
    began = time.perf_counter()
    kernel = Jupyter(name)
    kernel.run(code)
    took = time.perf_counter() - began
    kernel.close()
    return took


def _serve(requests: mp.Queue[str], replies: mp.Queue[Any]) -> None:
    import contextlib
    import io

    namespace: dict[str, Any] = {}
    while code := requests.get():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                value = eval(compile(code, "<cell>", "eval"), namespace)
            except SyntaxError:
                value = exec(compile(code, "<cell>", "exec"), namespace)  # type: ignore[func-returns-value]
        replies.put((repr(value), out.getvalue()))


class Queues:
    """A child process that evaluates what comes through one queue and answers through another, with no cage."""

    def __init__(self) -> None:
        self.requests: mp.Queue[str] = mp.Queue()
        self.replies: mp.Queue[Any] = mp.Queue()
        self.process = mp.Process(target=_serve, args=(self.requests, self.replies), daemon=True)
        self.process.start()

    def run(self, code: str) -> int:
        self.requests.put(code)
        return len(self.replies.get()[1])

    def close(self) -> None:
        self.requests.put("")
        self.process.join()


def _serve_and_fork(channel: Connection, modules: list[str], kept: int) -> None:
    """Answer, then leave a copy of this process behind; of those as many as are kept."""
    import gc
    import importlib

    namespace: dict[str, Any] = {module.partition(".")[0]: importlib.import_module(module) for module in modules}
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    copies: list[int] = []
    while code := channel.recv_bytes():
        channel.send_bytes(repr(eval(code, namespace)).encode())
        copy = os.fork()
        if copy == 0:
            while True:
                signal.pause()
        copies.append(copy)
        if len(copies) > kept:
            os.kill(copies.pop(0), signal.SIGKILL)
    for copy in copies:
        os.kill(copy, signal.SIGKILL)


class Forks:
    """The least that a checkpoint for each cell can be: a child that forks itself, with neither daemon nor cage."""

    def __init__(self, modules: list[str], kept: int) -> None:
        context = mp.get_context("spawn")
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=_serve_and_fork, args=(theirs, modules, kept), daemon=True)
        self.process.start()
        theirs.close()
        self.run("1")

    def run(self, code: str) -> None:
        self.channel.send_bytes(code.encode())
        self.channel.recv_bytes()

    def close(self) -> None:
        self.channel.send_bytes(b"")
        self.process.join()

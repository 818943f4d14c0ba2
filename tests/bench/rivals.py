"""What Lair is measured against: a Jupyter kernel, and a child process behind two queues."""

from __future__ import annotations

import multiprocessing as mp
import os
import queue
import time
from typing import Any, Callable

from jupyter_client.manager import start_new_kernel

os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or every kernel prints a warning

Sample = float  # seconds


def timed(act: Callable[[], Any]) -> Sample:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


class Jupyter:
    """ipykernel, through the client library everybody uses."""

    def __init__(self) -> None:
        self.manager: Any
        self.client: Any
        self.manager, self.client = start_new_kernel(kernel_name="python3")

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

    def restart(self) -> None:
        self.manager.restart_kernel(now=True)
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


def jupyter_open(code: str) -> Sample:
    """From nothing to the first result."""
    began = time.perf_counter()
    kernel = Jupyter()
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

"""The beginning of a context of E2B: its working directory."""

from __future__ import annotations

import base64
import json
import os


def _main(packed: str) -> None:
    path = json.loads(base64.b64decode(packed))["cwd"]
    if path == "/home/user" or path.startswith("/home/user/"):
        path = os.path.join(os.getcwd(), path[len("/home/user/") :])
    try:
        os.makedirs(path, exist_ok=True)
        os.chdir(path)
    except OSError:
        pass

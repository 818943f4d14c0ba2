"""What a cause did to the code, and why a session is no more.

Made by client/python/generate.py from proto/causes.h.
"""

CELL = {
    "exit": "the code exited",
    "interrupt": "the code was interrupted",
    "timeout": "the code was stopped at its time limit",
    "oom": "the code was killed: it used more memory than its session may have",
    "workspace": "the code was killed: its files outgrew the limit of its session",
    "forbidden": "the code breaks a rule, which stderr names, and was not run",
    "reset": "the session was reset while the code ran",
    "shutdown": "the session was ended while the code ran",
    "idle_ttl": "the session was idle for too long",
    "hard_ttl": "the session reached the end of its time",
}

SESSION = {
    "shutdown": "it was shut down",
    "idle_ttl": "it was idle for too long",
    "hard_ttl": "its time was over",
    "stopped": "laird was stopped",
    "lost": "laird was killed, or the host went down",
    "unknown": "nobody knows why",
}

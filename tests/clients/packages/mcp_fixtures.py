"""The fixtures that the conformance suite wants of a server: a proxy of HTTP before `lair serve`, which knows their names.

A tool of the suite is code, for a tool of Lair's; a resource of its is a file of a session. A question of the suite is the
one that Lair asks, whether packages may be installed. Only these names, and what the person says, are put in place of one
another: headers, statuses, results, streams and errors go through as they are."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from http_server import PATIENCE, Server
from index import Index
from lair import Client

PNG = "bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de')"
PROGRESS = "import time\nfor done in (0, 50, 100):\n    print(f'{done}/100', flush=True)\n    time.sleep(0.3)"
ASK = "%pip install {}"

# The code of a tool, in which {} is a package that nobody has yet, and the names that the suite has for its questions.
TOOLS: dict[str, tuple[str, list[str]]] = {
    "test_simple_text": ("'This is a simple text response for testing.'", []),
    "test_image_content": (f"display({{'image/png': {PNG}}}, raw=True)", []),
    "test_error_handling": ("raise RuntimeError('This tool intentionally returns an error for testing')", []),
    "test_tool_with_progress": (PROGRESS, []),
    "test_logging_tool": ("print('Tool execution started')", []),
    "test_elicitation": (ASK, []),
    "test_streaming_elicitation": (ASK, []),
    "test_input_required_result_elicitation": (ASK, ["user_name"]),
    "test_input_required_result_request_state": (ASK, ["confirm"]),
    "test_input_required_result_tampered_state": (ASK, ["confirm"]),
    "test_input_required_result_multi_round": (f"{ASK}\nprint('step 1')\n{ASK}", ["step1", "step2"]),
}
RESOURCES = {
    "test://static-text": "lair://sessions/conformance/static-text.txt",
    "test://static-binary": "lair://sessions/conformance/static-binary.png",
    # of lair://sessions/{session}/{+path}
    "test://template/123/data": "lair://sessions/123/data.json",
}
FILES = {
    "conformance": f"open('static-text.txt', 'w').write('This is the content of the static text resource.')\n"
    f"open('static-binary.png', 'wb').write({PNG})",
    "123": "open('data.json', 'w').write('{\"id\": \"123\"}')",
}
HOP = {"content-length", "transfer-encoding", "connection", "keep-alive"}


class Names:
    """What the suite calls its fixtures, and what they are here."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.n = 0  # of packages and sessions: of a session whose question nobody answers nothing more is asked
        self.numbers: dict[str, str] = {}  # of questions, by their names

    def new(self) -> str:
        self.n += 1
        return f"fixture-{self.n}"

    def package(self) -> str:
        name = self.new()
        self.index.add(name, "1.0")
        return name

    def call(self, params: Any) -> list[str]:
        """Changes the params of a call of a fixture. Returns the names of its questions."""
        code, questions = TOOLS[params["name"]]
        code = code.format(*(self.package() for _ in range(code.count("{}")))) if ASK in code else code
        params["name"] = "python_session_execute"
        params["arguments"] = {"code": code, "session_id": self.new()}
        responses = params.get("inputResponses")
        if isinstance(responses, dict):
            params["inputResponses"] = {self.numbers.get(name, name): said(it) for name, it in responses.items()}
        return questions

    def ask(self, message: Any) -> list[str]:
        """Changes a message of the client."""
        params = message.get("params", {})
        if message.get("method") == "tools/call" and params.get("name") in TOOLS:
            return self.call(params)
        if message.get("method") == "resources/read" and params.get("uri") in RESOURCES:
            params["uri"] = RESOURCES[params["uri"]]
        if "method" not in message and "result" in message:
            message["result"] = said(message["result"])
        return []

    def told(self, answer: bytes, questions: list[str]) -> bytes:
        """Questions get the names that the suite has for them."""
        message = json.loads(answer)
        asked = message.get("result", {}).get("inputRequests", {})
        for number in list(asked):
            name = questions[int(number) - 1]
            self.numbers[name] = number
            asked[name] = asked.pop(number)
        return json.dumps(message).encode()


def said(response: Any) -> Any:
    """Whatever the person has filled in is consent."""
    good = isinstance(response, dict) and isinstance(response.get("content"), dict)
    return {**response, "content": {"approve": True}} if good else response


def handler_of(server: Server, names: Names) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            questions: list[str] = []
            try:
                message = json.loads(body)
                questions = names.ask(message)
                body = json.dumps(message).encode()
                name = message["params"].get("name" if message["method"] == "tools/call" else "uri")
                if headers.get("Mcp-Name", headers.get("mcp-name", name)) in (*TOOLS, *RESOURCES):
                    headers = {key: it for key, it in headers.items() if key.lower() != "mcp-name"}
                    headers["Mcp-Name"] = name
            except (ValueError, AttributeError, KeyError):
                pass
            connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
            try:
                connection.request(self.command, self.path, body or None, headers)
                self.back(connection.getresponse(), questions)
            except OSError:  # the client has gone; so its request goes, too
                self.close_connection = True
            finally:
                connection.close()

        def back(self, answer: http.client.HTTPResponse, questions: list[str]) -> None:
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            streams = answer.getheader("Content-Type") == "text/event-stream"
            body = b"" if streams else answer.read()
            if body and questions:
                body = names.told(body, questions)
            self.send_header(*(("Transfer-Encoding", "chunked") if streams else ("Content-Length", str(len(body)))))
            self.end_headers()
            self.wfile.write(body)
            while streams:
                piece = answer.read1(65536)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                streams = bool(piece)

        do_GET = do_POST = do_DELETE = forward

        def log_message(self, *unused: object) -> None:
            pass

    return Handler


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *unused: object) -> None:
        """A client has gone."""


@contextmanager
def fixtures_of(server: Server, client: Client, index: Index) -> Iterator[str]:
    """The URL of the suite's server."""
    for session, code in FILES.items():
        assert client.exec(code, session).returncode == 0
    proxy = Proxy(("127.0.0.1", 0), handler_of(server, Names(index)))
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}/mcp"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()

"""The prompt of lair repl on a terminal, by prompt_toolkit: one cell at a time, edited as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
from typing import TYPE_CHECKING, Any, Iterator

from prompt import INDENT, LEAVE, history_path, indent_after, is_complete, wants_vi
from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

STYLE = {"prompt": "bold ansimagenta", "auto-suggestion": "ansibrightblack"}
# kitty's protocol: can a picture of one pixel be shown?
PICTURES_QUERY = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
PICTURES_ANSWER = "Gi=31;OK"
ANSWER_MAX = 64


def lexer() -> Lexer | None:
    with contextlib.suppress(ImportError):
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.python import PythonLexer

        return PygmentsLexer(PythonLexer)
    return None


class Lair:
    """The other end of the socket."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.matches: asyncio.Future[list[Any]] | None = None

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(sock=self.link, limit=1 << 30)

    def send(self, *message: object) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def hear(self) -> list[Any] | None:
        line = await self.reader.readline()
        return list(json.loads(line)) if line else None

    async def complete(self, before: str) -> list[Any]:
        """How many characters before the cursor the texts begin with, and the texts."""
        self.matches = asyncio.get_running_loop().create_future()
        self.send("complete", before)
        return await self.matches


class Names(Completer):
    """What the session knows, and lair's commands."""

    def __init__(self, lair: Lair, commands: list[str]) -> None:
        self.lair, self.commands = lair, commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        return iter(())

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        before = document.text_before_cursor
        sign = re.search(r"^\s*(%{1,2}\w*)$", before)
        for name in self.commands if sign else ():
            if sign and name.startswith(sign[1]):
                yield Completion(name, -len(sign[1]))
        if not sign:
            typed, texts = await self.lair.complete(before)
            for text in texts:
                yield Completion(text, -typed)


class Editor:
    def __init__(self, link: socket.socket, options: dict[str, Any]) -> None:
        colour = bool(options["colour"])
        path = history_path()
        self.lair = Lair(link)
        self.names = Names(self.lair, options["commands"])
        self.bindings = KeyBindings()
        self.pasted = self.ended = False  # the cell was pasted; an empty line has ended a block
        self.asks = bool(options["kitty"])  # the terminal is still to be asked whether it shows pictures
        self.answer: str | None = None  # what has come of its answer
        self.shown = asyncio.Event()  # nobody writes above the prompt
        self.bind()
        self.prompt: PromptSession[str] = PromptSession(
            [("class:prompt", ">>> ")],
            prompt_continuation=[("class:prompt", "... ")],
            multiline=True,
            completer=self.names,
            complete_while_typing=False,
            complete_style=CompleteStyle.MULTI_COLUMN,
            auto_suggest=AutoSuggestFromHistory() if colour else None,
            history=FileHistory(path) if path else InMemoryHistory(),
            key_bindings=self.bindings,
            lexer=lexer() if colour else None,
            style=Style.from_dict(STYLE if colour else {}),
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            editing_mode=EditingMode.VI if wants_vi() else EditingMode.EMACS,
            enable_suspend=True,
            tempfile_suffix=".py",
        )

    # ---- keys ----

    def bind(self) -> None:
        editing = has_focus(DEFAULT_BUFFER)
        for key, act in (("tab", self.on_tab), ("backspace", self.on_backspace), ("enter", self.on_enter)):
            self.bindings.add(key, filter=editing)(act)
        self.bindings.add(Keys.BracketedPaste, filter=editing)(self.on_paste)
        # The terminal answers ESC _ text ESC \, in one piece.
        answering = Condition(lambda: self.answer is not None)
        self.bindings.add("escape", "_", eager=True)(self.on_answer)
        for key in ("escape", Keys.Any):
            self.bindings.add(key, filter=answering, eager=True)(self.on_answer_part)

    @staticmethod
    def pasting(event: KeyPressEvent) -> bool:
        """More keys wait: nobody types that fast."""
        return len(event.key_processor.input_queue) > 0

    def on_tab(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
        elif self.pasting(event):
            buffer.insert_text("\t")
        elif not buffer.document.current_line_before_cursor.strip():
            buffer.insert_text(" " * INDENT)
        else:
            event.app.create_background_task(self.complete(event, buffer))

    async def complete(self, event: KeyPressEvent, buffer: Buffer) -> None:
        """Put in what all choices have in common, or go past it where it stands already; else show them."""
        document = buffer.document
        found = [it async for it in self.names.get_completions_async(document, CompleteEvent())]
        if buffer.document != document:
            return
        suffix = get_common_complete_suffix(document, found)
        if suffix and document.text_after_cursor.startswith(suffix):
            buffer.cursor_position += len(suffix)
        elif suffix:
            buffer.insert_text(suffix)
        elif len(found) > 1:
            buffer.start_completion()
        elif not found:
            event.app.output.bell()
            event.app.output.flush()

    def on_backspace(self, event: KeyPressEvent) -> None:
        before = event.current_buffer.document.current_line_before_cursor
        blanks = len(before) if not before.strip(" ") else 0
        event.current_buffer.delete_before_cursor(min(max(blanks, 1), INDENT))

    def on_enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        recalled = buffer.working_index != len(buffer._working_lines) - 1
        inside = "\n" in buffer.document.text_after_cursor and buffer.document.text_after_cursor.strip()
        if inside and recalled and text in buffer.history.get_strings():
            inside = ""  # it is as it was
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif inside or (text.strip() and not is_complete(text + "\n", self.pasted or recalled)):
            blanks = 0 if self.pasting(event) else indent_after(buffer.document.text_before_cursor + "\n")
            buffer.insert_text("\n" + " " * blanks)
        else:
            self.pasted |= recalled
            self.ended = "\n" in text and not text.rpartition("\n")[2].strip()
            buffer.document = Document(text.rstrip())
            buffer.validate_and_handle()

    def on_paste(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").rstrip("\n")
        self.pasted |= "\n" in text
        event.current_buffer.insert_text(text)

    # ---- pictures ----

    def ask_pictures(self) -> None:
        if self.asks:
            self.asks = False
            self.prompt.output.write_raw(PICTURES_QUERY)
            self.prompt.output.flush()

    def on_answer(self, event: KeyPressEvent) -> None:
        self.answer = ""

    def on_answer_part(self, event: KeyPressEvent) -> None:
        self.answer = (self.answer or "") + event.data
        if event.data == "\\" and self.answer.startswith(PICTURES_ANSWER):
            self.lair.send("kitty")
        if event.data == "\\" or len(self.answer) > ANSWER_MAX:
            self.answer = None

    # ---- what lair asks ----

    async def read(self) -> None:
        """A cell."""
        while True:
            self.pasted = self.ended = False
            try:
                text = await self.prompt.prompt_async(pre_run=self.ask_pictures)
            except KeyboardInterrupt:
                continue
            except EOFError:
                text = LEAVE[0]
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # while cells run, it is lair's
            if text.strip() in LEAVE:
                self.lair.send("end")
                return
            if text.strip():
                self.lair.send("cell", text + ("\n\n" if self.ended else "\n"), self.pasted)
                return

    async def aside(self) -> None:
        """lair writes above the prompt."""
        async with in_terminal():
            self.lair.send("hidden")
            await self.shown.wait()

    def heard(self, message: list[Any], tasks: list[asyncio.Task[None]]) -> None:
        what, *rest = message
        if what in ("read", "hide"):
            self.shown.clear()
            tasks.append(asyncio.create_task(self.read() if what == "read" else self.aside()))
        elif what == "show":
            self.shown.set()
        elif what == "matches" and self.lair.matches and not self.lair.matches.done():
            self.lair.matches.set_result(rest)
        elif what == "interrupt" and self.prompt.app.is_running:
            self.prompt.app.exit(exception=KeyboardInterrupt())

    async def serve(self) -> None:
        await self.lair.open()
        tasks: list[asyncio.Task[None]] = []
        while message := await self.lair.hear():
            self.heard(message, tasks)
            for task in [it for it in tasks if it.done()]:
                tasks.remove(task)
                task.result()  # what has failed ends the prompt
        self.shown.set()
        if self.prompt.app.is_running:
            self.prompt.app.exit(exception=EOFError())
        if tasks:
            await asyncio.wait(tasks, timeout=1)


def run(link: socket.socket, options: dict[str, Any]) -> None:
    async def edit() -> None:
        await Editor(link, options).serve()

    asyncio.run(edit())

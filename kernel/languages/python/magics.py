"""What is not Python but IPython's: magics, commands after `!`, questions with `?`.

Looked at only when a cell does not compile, or speaks of get_ipython. Where IPython is installed it is imported then, and
its own transformer and magics do it, by a shell on the session's namespace. It keeps no history and has no directory.
Where IPython is not installed, one sentence says what to write instead.
"""

import builtins
import functools
import importlib
import importlib.util
import linecache
import os
import re
import shlex
import subprocess
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

if TYPE_CHECKING:
    import display
    import errors
    import packages
    import setup

    def refused(reason: str, command: str) -> str:
        """The text of a refusal, with what to do instead; in C."""

    def installs(command: str) -> bool:
        """Likewise: whether a command would install packages."""


_cache: Dict[str, Any] = linecache.cache
_main: Any = sys.modules["__main__"]
_find_spec = importlib.util.find_spec
_import_module = importlib.import_module
_builtins: Dict[str, Any] = vars(builtins)
_Told = types.SimpleNamespace
_SyntaxError = SyntaxError
_PermissionError = PermissionError


def _nothing(*unused: object) -> None:
    pass


_shell: Any = None
shells: List[Any] = []  # the shell, to which cells are announced; empty if there is none
tell_page: Callable[[Dict[str, str]], None] = _nothing  # by a notebook
tell_next_input: Callable[[str, bool], None] = _nothing
hidden: Dict[str, Any] = {}  # IPython's own names in the session's namespace

_FOREIGN = re.compile(
    r"""^[ \t]*(?:
        (?P<kind>%%?)(?P<name>[A-Za-z_]\w*|!)[ \t]*(?P<rest>.*)     # %time f()
      | (?:[\w.,\[\]'" \t]+=[ \t]*)?!{1,2}(?P<command>[^=\s].*)      # !ls, x = !ls
      | [\w.,\[\]'" \t]+=[ \t]*%(?P<assigned>[A-Za-z_]\w*).*         # x = %env HOME
      | \?{1,2}(?P<before>[\w.*%]+)[ \t]*                            # ?name
      | (?P<after>[\w.*%\[\]'"]+)[ \t]*\?{1,2}[ \t]*                 # name?
    )$""",
    re.VERBOSE | re.MULTILINE,
)
_CELL = re.compile(r"<cell (\d+)>")


def _there() -> bool:
    """Whether IPython is installed."""
    try:
        return "IPython" in sys.modules or _find_spec("IPython") is not None
    except (ImportError, ValueError):
        return False


# ---- without IPython: plain Python to write instead ----

_RELOADED = "have the cells sent with reload (lair exec --reload), or import importlib; importlib.reload(module)"
_KEPT = "variables stay as long as the session, and `lair save` keeps them beyond it"

# By the names of magics, with blanks between them; before the colon: of a whole cell.
_PLAIN = {
    "aimport autoreload": _RELOADED,
    "alias alias_magic autocall automagic autosave colors config doctest_mode gui logoff logon logstart logstate logstop "
    "pprint precision rehashx unalias unload_ext xmode": "leave it out, it is about IPython's own prompt",
    "capture": "import io, contextlib; with contextlib.redirect_stdout(io.StringIO()) as out: ...",
    "cd pushd popd": "import os; os.chdir({rest!r})",
    "debug pdb": "import pdb; pdb.pm(), with somebody to answer its questions",
    "ed edit": "there is no editor here, open({rest!r}, 'w').write(text)",
    "env": "import os; os.environ",
    "file writefile": "with open({rest!r}, 'w') as file: file.write(text)",
    "hist history macro notebook recall rep rerun": "`lair history` has the cells of a session",
    "html HTML": "display({{'text/html': text}}, raw=True)",
    "javascript js": "display({{'application/javascript': text}}, raw=True)",
    "latex": "display({{'text/latex': text}}, raw=True)",
    "load loadpy": "exec(open({rest!r}).read())",
    "load_ext": "import the library itself",
    "ls": "import os; os.listdir()",
    "lsmagic magic quickref": "here are no magics",
    "markdown": "display({{'text/markdown': text}}, raw=True)",
    "matplotlib": "leave it out, figures are shown when the cell ends",
    "page pycat": "print(open({rest!r}).read())",
    "pdef pdoc pinfo": "help({rest})",
    "pfile pinfo2 psource": "import inspect; print(inspect.getsource({rest}))",
    "prun": "import cProfile; cProfile.run({rest!r})",
    "psearch": "[name for name in dir() if 'part' in name]",
    "pwd": "import os; os.getcwd()",
    "pylab": "import numpy as np, matplotlib.pyplot as plt",
    "reset reset_selective": "have the session reset, or del the names",
    "run": "import runpy; globals().update(runpy.run_path({rest!r}, run_name='__main__'))",
    "save": "open(name, 'w').write(text)",
    "set_env": "import os; os.environ[name] = value",
    "store": _KEPT,
    "svg SVG": "display({{'image/svg+xml': text}}, raw=True)",
    "tb": "import sys, traceback; traceback.print_exception(sys.last_type, sys.last_value, sys.last_traceback)",
    "time": "import time; start = time.perf_counter(); {rest}; print(time.perf_counter() - start)",
    "timeit": "import timeit; timeit.timeit({rest!r}, globals=globals(), number=1000) / 1000",
    "who who_ls": "[name for name in dir() if name[0] != '_']",
    "whos": "{{name: type(value) for name, value in globals().items() if name[0] != '_'}}",
    "xdel": "del {rest}",
    ":prun": "import cProfile; cProfile.run(code), where code is the cell as a string",
    ":time": "import time; start = time.perf_counter(), the cell, and print(time.perf_counter() - start)",
    ":timeit": "import timeit; timeit.timeit(code, globals=globals(), number=1000) / 1000, where code is the cell as a "
    "string",
}
_INSTEAD = {name: plain for names, plain in _PLAIN.items() for name in names.split()}
_FLAGS = re.compile(r"(?:-[nrpslTD] ?[\w.]+\s+|-[acfioqrtv]\s+)*")
_SHELLS = ("!", "bash", "sc", "script", "sh", "sx", "system")
_PROGRAMS = (
    "cat",
    "cp",
    "less",
    "ll",
    "man",
    "mkdir",
    "more",
    "mv",
    "perl",
    "python",
    "python3",
    "rm",
    "rmdir",
    "ruby",
)

_COMMANDS = {
    "cat": "print(open(name).read())",
    "cp": "import shutil; shutil.copy(old, new)",
    "curl": "import urllib.request; urllib.request.urlopen(url).read()",
    "head": "import itertools; print(*itertools.islice(open(name), 10))",
    "ls": "import os; os.listdir()",
    "mkdir": "import os; os.makedirs(name)",
    "mv": "import os; os.rename(old, new)",
    "pwd": "import os; os.getcwd()",
    "rm": "import os; os.remove(name)",
    "wget": "import urllib.request; urllib.request.urlretrieve(url, name)",
}


def _missing_grant() -> Optional[str]:
    """The reason why no package can be installed by a program; None if nothing is missing for that."""
    if not setup.granted["programs"]:
        return "subprocess-not-granted"
    return None if setup.granted["network"] else "network-not-granted"


def _command_instead(command: str) -> str:
    missing = _missing_grant()
    if missing and installs(command):
        return refused(missing, command)
    if setup.granted["programs"]:
        return f"import subprocess; print(subprocess.getoutput({command!r}))"
    plain = _COMMANDS.get(command.split()[0])
    return refused("subprocess-not-granted", command) + (f"; {plain}" if plain else "")


def _magic_instead(kind: str, name: str, rest: str) -> str:
    if name in ("pip", "conda", "mamba", "uv"):
        program = "sys.executable, '-m', 'pip'" if name == "pip" else repr(name)
        missing = _missing_grant()
        words = ", ".join(map(repr, rest.split()))
        return (
            refused(missing, f"{name} {rest}")
            if missing
            else f"import subprocess, sys; subprocess.run([{program}, {words}])"
        )
    if name in _SHELLS:
        return _command_instead(rest or "...")
    if name in _PROGRAMS:
        return _command_instead(f"{name} {rest}".strip())
    if name == "load_ext" and rest == "autoreload":
        name = rest
    plain = _INSTEAD.get(":" + name) if kind == "%%" else None
    plain = plain or _INSTEAD.get(name, "write it in plain Python")
    return plain.format(rest=_FLAGS.sub("", rest, count=1))


def _instead(found: "re.Match[str]") -> str:
    """The sentence that says what to write instead."""
    what = found.group().strip()
    if found["command"]:
        return (
            f"{what} is a command of IPython's, which is not installed here: {_command_instead(found['command'])}"
        )
    name = found["name"] or found["assigned"]
    if name:
        how = _magic_instead(found["kind"] or "%", name, (found["rest"] or "").strip())
        return f"{found['kind'] or '%'}{name} is IPython's, which is not installed here: {how}"
    return (
        f"{what} is IPython's, which is not installed here: help({(found['before'] or found['after']).strip('%')})"
    )


# ---- with IPython ----


def _run(command: str, **options: Any) -> Any:
    """By a shell. Its output goes where the cell's output goes."""
    sys.stdout.flush()
    try:
        return subprocess.run(command, shell=True, **options)
    except _PermissionError as error:
        words = command.split()
        plain = _COMMANDS.get(words[0]) if words else None
        if plain and isinstance(error.strerror, str):
            error.strerror += f"; {plain}"
        raise


def _system(command: str) -> int:
    if not installs(command) or not setup.granted["programs"]:
        return int(_run(command).returncode)
    offline = {} if setup.granted["network"] else {"PIP_NO_INDEX": "1"}
    status = int(_run(command, env={**os.environ, **offline}).returncode)
    if status == 0:
        importlib.invalidate_caches()
    elif offline:
        print(refused("network-not-granted", command), file=sys.stderr)
    return status


def _pip(line: str) -> None:
    """As IPython's, but without its note that something must be started again."""
    vars(_main)["_exit_code"] = _system(f"{shlex.quote(sys.executable)} -m pip {line}")


# Magics about IPython's own prompt or its traceback: a cell goes on after them.
_NOTHING = {
    "autocall": "write the call with its brackets",
    "automagic": "a magic begins with %",
    "autosave": "`lair history` has the cells",
    "colors": "whoever reads the output colours it",
    "doctest_mode": "write the examples as a prompt shows them",
    "logstart": "%history and `lair history` have the cells",
    "pdb": "%debug looks at the error afterwards",
    "pprint": "values are always laid out, and print(value) prints one as it is",
    "precision": "round(value, 3), or numpy.set_printoptions(precision=3)",
    "xmode": "tracebacks are Python's own",
}
_REFUSED = {
    "ed": "there is no editor here: %%writefile writes a file",
    "edit": "there is no editor here: %%writefile writes a file",
    "store": _KEPT,
}


def _does_nothing(name: str, line: str) -> None:
    print(f"%{name} does nothing here: {_NOTHING[name]}", file=sys.stderr)


def _is_refused(name: str, line: str) -> None:
    raise _import_module("IPython.core.error").UsageError(f"%{name}: {_REFUSED[name]}")


def _config(config: Any, line: str) -> None:
    if line.lstrip().startswith("InlineBackend"):
        print(
            "%config InlineBackend does nothing here: figures are PNG, or SVG if the cell is sent so (lair exec --svg); "
            "plt.rcParams['figure.dpi'] says how fine",
            file=sys.stderr,
        )
    else:
        config(line)


def _lsmagic(lsmagic: Any, line: str) -> None:
    print(lsmagic(line))


def _last_traceback(line: str) -> None:
    error = getattr(sys, "last_value", None)
    if error is None:
        raise _import_module("IPython.core.error").UsageError("no error has ended a cell of this session")
    print(errors.explain(error, 0, False)["traceback"], end="")


_SCRIPT_FLAGS = ("--bg", "--no-raise-error", "--raise-error")
_SCRIPT_NAMES = ("--out", "--err", "--proc")


def _script(line: str, cell: str) -> None:
    """%%bash and the like. IPython's own starts a thread that stays and would be copied with each checkpoint."""
    words: List[str] = []
    options: Dict[str, str] = {}
    given = iter(shlex.split(line))
    for word in given:
        option, equals, value = word.partition("=")
        if option in _SCRIPT_NAMES:
            options[option] = value if equals else next(given, "")
        elif word in _SCRIPT_FLAGS:
            options[word] = ""
        else:
            words.append(word)
    sys.stdout.flush()
    pipes = {name: subprocess.PIPE if option in options else None for name, option in _SCRIPT_PIPES.items()}
    program: Any = subprocess.Popen(words, stdin=subprocess.PIPE, encoding="utf-8", errors="replace", **pipes)  # type: ignore[call-overload]
    names = vars(_main)
    if "--proc" in options:
        names[options["--proc"]] = program
    if "--bg" in options:
        program.stdin.write(cell)
        program.stdin.close()
        names.update(
            {options[option]: getattr(program, name) for name, option in _SCRIPT_PIPES.items() if option in options}
        )
        return
    told = dict(zip(_SCRIPT_PIPES.values(), program.communicate(cell)))
    names.update({options[option]: text for option, text in told.items() if option in options})
    if program.returncode and "--no-raise-error" not in options:
        raise subprocess.CalledProcessError(program.returncode, words)


_SCRIPT_PIPES = {"stdout": "--out", "stderr": "--err"}


class _Database(Dict[str, Any]):
    """Keeps in memory what IPython keeps in a directory, so that a checkpoint has it."""

    def __delitem__(self, key: str) -> None:
        self.pop(key, None)

    def keys(self, pattern: Optional[str] = None) -> Any:
        fnmatch = _import_module("fnmatch").fnmatch
        return [key for key in self if pattern is None or fnmatch(key, pattern)]


class _Profile:
    """Has no directories: its paths lead to nothing."""

    location = startup_dir = log_dir = security_dir = pid_dir = os.devnull


def _shell_class(module: Any) -> Any:
    slist = _import_module("IPython.utils.text")
    usage = _import_module("IPython.core.error").UsageError
    database = _Database()

    class Shell(module.InteractiveShell):  # type: ignore[misc]
        """Works on the session's namespace, and adds no name to it that a session would use."""

        db = property(lambda shell: database, lambda shell, value: None)

        def init_ipython_dir(self, ipython_dir: Any) -> None:
            self._trait_values["ipython_dir"] = os.devnull

        def init_profile_dir(self, profile_dir: Any) -> None:
            self._trait_values["profile_dir"] = _Profile()

        def init_virtualenv(self) -> None:
            pass

        def init_prompts(self) -> None:
            pass

        def init_user_ns(self) -> None:
            history = self.history_manager
            own = {"_ih": history.input_hist_parsed, "_oh": history.output_hist, "_dh": history.dir_hist}
            self.user_ns.update(own)
            self.user_ns_hidden.update(own)
            hidden.update(own)

        def system(self, command: str) -> None:
            self.user_ns["_exit_code"] = _system(self.var_expand(command, depth=1))

        system_raw = system_piped = system

        def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
            command = self.var_expand(cmd, depth=depth + 1)
            text = _run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode("utf-8", "replace")
            return slist.SList(text.splitlines()) if split else slist.LSString(text)

        # An error ends the cell, instead of being printed.

        def showtraceback(self, exc_tuple: Any = None, *unused: Any, **options: Any) -> None:
            raise exc_tuple[1] if exc_tuple else sys.exc_info()[1]

        def showsyntaxerror(self, *unused: Any, **options: Any) -> None:
            raise sys.exc_info()[1]  # type: ignore[misc]

        def show_usage_error(self, exc: BaseException) -> None:
            raise exc

        def safe_execfile(self, fname: str, *where: Any, **options: Any) -> None:
            super().safe_execfile(fname, *where, **{**options, "raise_exceptions": True})

        def set_next_input(self, text: str, replace: bool = False) -> None:
            if display.in_notebook:
                tell_next_input(text, replace)
                return
            print(text, end="" if text.endswith("\n") else "\n")
            print("nothing was run: this is text for a prompt, which a cell has none of", file=sys.stderr)

        def debugger(self, force: bool = False) -> None:
            if not hasattr(sys, "last_traceback"):
                raise usage("no error has ended a cell of this session, so there is nothing to look at")
            self.InteractiveTB.tb = sys.last_traceback
            super().debugger(force=force)

        def enable_gui(self, gui: Any = None) -> None:
            if gui not in (None, "inline", "agg"):
                print(f"no windows here: %gui {gui} does nothing", file=sys.stderr)

        def enable_matplotlib(self, gui: Any = None) -> Any:
            if gui not in (None, "auto", "inline", "agg"):
                print(f"no windows here: figures are shown when the cell ends, without {gui}", file=sys.stderr)
            return "inline", "inline"

    return Shell


def _print_page(text: Any, *unused: Any, **options: Any) -> None:
    if display.in_notebook:
        tell_page(text if isinstance(text, dict) else {"text/plain": str(text)})
    else:
        print(text["text/plain"] if isinstance(text, dict) else text)


def _new_shell() -> Any:
    module: Any = _import_module("IPython.core.interactiveshell")
    config = _import_module("traitlets.config").Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autocall = 0
    if hasattr(module, "PickleShareDB"):  # IPython 8 opens one for its database at once
        module.PickleShareDB = lambda root: None
    before = sys.excepthook, sys.displayhook
    kind = _shell_class(module)
    try:
        shell = kind.instance(config=config, user_module=_main)
        _furnish(shell)
    except BaseException:
        kind.clear_instance()
        raise
    finally:
        sys.excepthook, sys.displayhook = before
    return shell


def _furnish(shell: Any) -> None:
    for name in ("_", "__", "___"):
        if vars(_main).get(name) == "":
            del vars(_main)[name]  # a `_` here would hide the last value
    shell.displayhook.update_user_ns = _nothing
    page = _import_module("IPython.core.page")
    shell.set_hook("show_in_pager", page.as_hook(_print_page), 90)
    script = shell.magics_manager.registry["ScriptMagics"]
    script.shebang = _script
    shell.register_magic_function(_script, "cell", "script")
    lines = shell.magics_manager.magics["line"]
    partial, find = functools.partial, shell.find_line_magic
    lines.update({name: partial(_does_nothing, name) for name in _NOTHING})
    lines.update({name: partial(_is_refused, name) for name in _REFUSED})
    lines.update(config=partial(_config, find("config")), lsmagic=partial(_lsmagic, find("lsmagic")))
    lines.update(pip=_pip, tb=_last_traceback)
    _builtins["get_ipython"] = shell.get_ipython
    _builtins["display"] = display.display


def shell() -> Any:
    """The one shell. Its history is the cells so far."""
    global _shell
    if _shell is None:
        _shell = _new_shell()
        shells.append(_shell)
    cells = {
        int(found[1]): "".join(_cache[name][2]) for name in list(_cache) for found in [_CELL.match(name)] if found
    }
    newest = max(cells, default=0)
    history = [cells.get(n, "") for n in range(newest + 1)]
    _shell.history_manager.input_hist_parsed[:] = _shell.history_manager.input_hist_raw[:] = history
    _shell.execution_count = newest
    return _shell


setup.WARM["IPython"] = lambda ipython: shell()


def meet() -> None:
    """Called when a cell mentions get_ipython."""
    if "get_ipython" not in _builtins and _there():
        shell()


def _call(event: str, *told: Any) -> None:
    for function in list(_shell.events.callbacks[event]):
        try:
            function(*told)
        except Exception as error:
            print(f"{event}: {type(error).__name__}: {error}", file=sys.stderr)


def announce(source: str, done: Optional[bool]) -> None:
    """Extensions hear of a cell that begins, and of its end: whether it was done."""
    info = _Told(raw_cell=source, store_history=True, silent=False, shell_futures=True, cell_id=None)
    if done is None:
        _call("pre_execute")
        _call("pre_run_cell", info)
    else:
        _call("post_execute")
        _call("post_run_cell", _Told(info=info, execution_count=_shell.execution_count, result=None, success=done))


@functools.lru_cache(maxsize=None)
def _transformer() -> Any:
    return _import_module("IPython.core.inputtransformer2").TransformerManager()


def _ends(source: str) -> str:
    return source if source.endswith("\n") else source + "\n"


def plain(source: str, error: SyntaxError) -> Optional[str]:
    """A cell that does not compile, as plain Python; None if it is not IPython's either. Raises an error that says
    more, if there is one."""
    without = packages.plain(source)
    if without != source:
        return plain(without, error) if _FOREIGN.search(without) else without
    if _FOREIGN.search(source) is None:
        return None
    if _there():
        text: str = _transformer().transform_cell(source)
        return None if text == _ends(source) else text
    lines = source.split("\n")
    wrong = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    found = _FOREIGN.match(wrong)
    if found is None:
        return None
    raise _SyntaxError(_instead(found), (error.filename, error.lineno, 1, wrong + "\n")) from None


def cell(source: str, filename: str, error: SyntaxError) -> Optional[str]:
    """As plain(), for a cell that will be run."""
    text = plain(source, error)
    if text is not None:
        if "get_ipython" in text:
            shell()
        errors.rewritten.add(filename)
        for name in ("<timed exec>", "<timed eval>"):  # the names that %%time gives to what it runs
            _cache.pop(name, None)
            if source.lstrip().startswith("%%"):
                body = _ends(source.lstrip()).split("\n", 1)[1]
                _cache[name] = (len(body), None, body.splitlines(True), name)
    return text

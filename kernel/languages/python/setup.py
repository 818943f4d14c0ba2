"""The work of the template between starting Python and making its first warden."""

import gc
import importlib
import importlib.machinery
import os
import re
import shutil
import site
import sys
import sysconfig
import tempfile
import warnings
from multiprocessing import process, resource_tracker
from typing import Any, Callable, Dict, List

_machinery = importlib.machinery
_USER_SITE_TAIL = "/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]

granted = {"programs": False, "network": False}


def check_environment() -> None:
    """A virtual environment of another version of Python would find none of its packages, so it is refused."""
    config = os.path.join(sys.prefix, "pyvenv.cfg")
    ours = "%d.%d" % sys.version_info[:2]
    if not os.path.exists(config):
        return
    with open(config, encoding="utf-8") as lines:
        pairs = [line.partition("=") for line in lines]
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    theirs = settings.get("version") or settings.get("version_info") or ours
    if theirs.split(".")[:2] != ours.split("."):
        raise RuntimeError(f"{sys.prefix} was made for Python {theirs}, and this is {ours}")


def preload(names: List[str]) -> List[str]:
    """Imports the modules that the profile names. Returns the optional ones that are missing. They make much, and next
    to no garbage: nobody looks for that, here or later, since it would take a tenth of the time."""
    missing = []
    gc.disable()
    for name in names:
        module = name.rstrip("?")
        try:
            importlib.import_module(module)
        except BaseException as error:
            absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
            if name.endswith("?") and absent:
                missing.append(module)
                continue
            raise ImportError(f"cannot preload {module}: {type(error).__name__}: {error}") from error
    gc.freeze()
    gc.enable()
    return missing


def _warm_pandas(pandas: Any) -> None:
    frame = pandas.DataFrame({"key": ["a", "b", "a"], "value": [1, 2, 3], "real": [0.5, 1.5, 2.5]})
    frame.groupby("key").agg({"value": "sum", "real": "mean"})
    frame.merge(frame, on="key").sort_values("value_x").describe()
    frame[frame.value > 1].pivot_table(index="key", values="real")
    repr(frame), frame._repr_html_(), repr(frame.value), frame.to_json(orient="split", date_format="iso")


def _warm_numpy(numpy: Any) -> None:
    square = numpy.arange(9.0).reshape(3, 3)
    repr(square @ square), square.mean(axis=0), numpy.linalg.norm(square), numpy.sort(square)
    numpy.random.default_rng(0).normal(size=3)


def _warm_matplotlib(matplotlib: Any) -> None:
    with tempfile.TemporaryFile() as file:
        pyplot = importlib.import_module("matplotlib.pyplot")
        figure, axes = pyplot.subplots(figsize=(1, 1))
        axes.plot([0, 1], [0, 1], label="x")
        axes.legend()
        figure.savefig(file, format="png", bbox_inches="tight")
        pyplot.close("all")
    # A cached font keeps its file open. Wardens close the template's descriptors, so the font would later close
    # another file that has got the same number.
    fonts: Any = getattr(importlib.import_module("matplotlib.font_manager"), "_get_font", None)
    if hasattr(fonts, "cache_clear"):
        fonts.cache_clear()


WARM: Dict[str, Callable[[Any], Any]] = {
    "numpy": _warm_numpy,
    "pandas": _warm_pandas,
    "matplotlib.pyplot": _warm_matplotlib,
}


def warm() -> None:
    """Runs once what sessions are likely to run. The first time is several times slower, and writes to more
    pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, run in WARM.items():
            if name in sys.modules:
                run(sys.modules[name])


def borrow_cache() -> str:
    """matplotlib and fontconfig need a cache directory while they are imported. Later nothing needs it."""
    path = tempfile.mkdtemp(prefix="lair-template-")
    os.environ["MPLCONFIGDIR"] = os.environ["XDG_CACHE_HOME"] = path
    return path


def return_cache(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    del os.environ["MPLCONFIGDIR"], os.environ["XDG_CACHE_HOME"]
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir", "_get_config_or_cache_dir"):
        forget = getattr(getattr(matplotlib, name, None), "cache_clear", None)
        if forget is not None:
            forget()
    tempfile.tempdir = None


def places() -> List[str]:
    """Every directory that holds Python, the standard library or packages."""
    paths = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    paths.update(os.path.dirname(os.path.realpath(program)) for program in (sys.executable, sys._base_executable))  # type: ignore[attr-defined]
    paths.update(sysconfig.get_paths().values(), site.getsitepackages(), sys.path)
    libdir = sysconfig.get_config_var("LIBDIR")
    paths.update([libdir] if libdir else [])
    return sorted(path for path in paths if os.path.isabs(path) and os.path.exists(path))


def sources(opened: List[bytes]) -> List[str]:
    """Every file that was read, and every directory in which a module was or would have been found. Of what was compiled
    the source counts, as it does for imports."""
    paths = {"/etc/localtime", *sys.path, *sys.path_importer_cache}
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        paths.update(
            path for path in (names.get("__file__"), *(names.get("__path__") or ())) if isinstance(path, str)
        )
    for directory in filter(os.path.isdir, site.getsitepackages()):
        paths.update(entry.path for entry in os.scandir(directory) if entry.name.endswith(".pth"))
    files = {
        path for path in map(os.fsdecode, opened) if not path.endswith(".pyc") and not path.startswith("/proc/")
    }
    paths.update(filter(os.path.isfile, files))
    return sorted(path for path in paths if os.path.isabs(path) and os.path.exists(path))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def allow_threads(variable: str, n: int) -> None:
    """For libraries that are imported later, and for programs."""
    os.environ[variable] = str(n)


def settle() -> None:
    """Nothing here is garbage. If a collection in a session touched these objects, every page that it touches would
    be copied."""
    gc.collect()
    gc.freeze()


def _track_nothing(name: str, kind: str) -> None:
    """multiprocessing starts a program that removes forgotten shared memory. That of a session ends with the
    session."""


def _packages_of_user(path: str) -> Any:
    """The finder for packages that a session installs. If their directory is missing when Python's own finder first
    looks, that finder never looks again."""
    if path != site.USER_SITE and not path.endswith(_USER_SITE_TAIL):
        raise ImportError
    return _machinery.FileFinder(
        path,
        (_machinery.ExtensionFileLoader, _machinery.EXTENSION_SUFFIXES),
        (_machinery.SourceFileLoader, _machinery.SOURCE_SUFFIXES),
        (_machinery.SourcelessFileLoader, _machinery.BYTECODE_SUFFIXES),
    )


def _sees_user_site() -> bool:
    """Whether this Python, as a program, looks for packages of its user."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as lines:
            return any(re.match(r"include-system-site-packages\s*=\s*true", line) for line in lines)
    except OSError:
        return True


def _use_user_site() -> None:
    """pip installs into the session's home. As in any Python, these packages come before those of all sessions."""
    site.USER_BASE = site.USER_SITE = None
    path = site.getusersitepackages()
    first = (i for i, there in enumerate(sys.path) if there.endswith(("site-packages", "dist-packages")))
    sys.path.insert(next(first, len(sys.path)), path)
    sys.path_hooks.insert(0, _packages_of_user)
    site.ENABLE_USER_SITE = True
    # pip cannot reach the system's own packages, so it may be told to break them.
    os.environ.setdefault("PIP_BREAK_SYSTEM_PACKAGES", "1")
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    if not _sees_user_site():
        os.environ.setdefault("PIP_TARGET", path)
        os.environ.setdefault("PYTHONPATH", path)


def move_in(workspace: str, scratch: str, programs: bool, network: bool, names_by_tcp: bool) -> None:
    """In the warden: the workspace is the session's home, and modules in it can be imported."""
    granted.update(programs=bool(programs), network=bool(network))
    os.environ["HOME"] = os.environ["PWD"] = workspace
    os.environ["USER"] = os.environ["LOGNAME"] = "session"
    if scratch:
        os.environ.setdefault("XDG_CACHE_HOME", scratch + "/.cache")
        os.environ.setdefault("MPLCONFIGDIR", scratch + "/.matplotlib")
    os.environ.setdefault("TMPDIR", scratch or workspace)
    if names_by_tcp:  # datagrams are refused; this makes glibc use TCP
        os.environ["RES_OPTIONS"] = f"{os.environ.get('RES_OPTIONS', '')} use-vc".strip()
    if programs:
        _use_user_site()
    else:
        resource_tracker.register = resource_tracker.unregister = _track_nothing  # type: ignore[assignment]
    # By this key a session's processes know each other. All sessions share the template's, so it is replaced.
    process.current_process().authkey = os.urandom(32)
    sys.path.insert(0, "")


def version() -> str:
    return "%d.%d.%d" % sys.version_info[:3]

"""Packages that come while a session runs. A set of them is a directory that the session sees from its birth and nobody
writes to: what the session gets is a longer sys.path, which is gone back like any other state. The router has the set made;
`functions` has the way there and back."""

import ast
import fnmatch
import gc
import importlib
import importlib.metadata
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set

if TYPE_CHECKING:
    import functions

    def hold(path: str) -> None:
        """The interpreter's, in C: laird removes no set whose lock somebody holds."""

    def have(name: str) -> None:
        """Likewise: laird says of this session that it has that set."""


_distributions = importlib.metadata.distributions
_modules = sys.modules

policy = "off"
due: List[str] = []  # what the first cell has yet to install
asked: List[str] = []  # what was
_base: Dict[str, str] = {}  # the set that there is: its name and its path
_since: Dict[str, int] = {}  # the first cell that found this module imported; 0: it came with the interpreter
_counted = 0  # how many modules there were then
_first = True  # no cell has looked yet
_ahead: Dict[
    str, Any
] = {}  # the set of which this interpreter is a template: where it is, and as what it was asked for
_aside: Dict[str, Dict[str, Any]] = {}  # modules that were imported ahead, by the set that they are of

_BLOCK = re.compile(r"^# /// script[ \t]*\n((?:#(?: .*)?\n)+?)# ///[ \t]*$", re.MULTILINE)
_versions: Dict[str, Dict[str, str]] = {}
_LOCKED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_allow: List[str] = []  # patterns of projects that may be asked for; none: all
_deny: List[str] = []
_SHOWN = 12
_GOES_ON = (
    "not waiting for {} any longer: what was begun goes on outside, and is there sooner when it is asked for again"
)
_AHEAD = 8  # modules of one project that are imported ahead
_OWN_TESTS = frozenset(("test", "tests", "testing", "docs", "examples", "setup", "conftest"))

# Projects that are not called like the modules in them; of several with the same modules, the best one first.
PROJECTS = {
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "Levenshtein": "levenshtein",
    "MySQLdb": "mysqlclient",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "grpc": "grpcio",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "mysql": "mysql-connector-python",
    "nacl": "pynacl",
    "osgeo": "gdal",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary psycopg2",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "snowflake": "snowflake-connector-python",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "win32api": "pywin32",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}


# Well-known projects that are called like the module in them.
KNOWN = frozenset(
    """aiohttp altair anthropic anyio arrow arviz astropy bokeh boto3 catboost cartopy celery chardet click cloudpickle contextily
    cryptography cvxpy cython dash dask datasets deap diskcache django docutils docx2pdf duckdb emcee fastapi feedparser fiona
    flask folium fsspec gensim geopandas geopy h5py httpx huggingface_hub humanize imageio ipywidgets isort jax jieba jinja2
    joblib jsonschema keras kaleido langchain lifelines lightgbm llvmlite lxml mamba markdown matplotlib mesa mlflow modin
    more_itertools mpmath msgpack mypy netCDF4 networkx nltk numba numpy odfpy openai openpyxl optuna orjson ortools pandas
    paramiko patsy pdfplumber peewee pendulum pingouin plotly plotnine polars pooch prophet psutil psycopg pulp pyarrow pycountry
    pydantic pydot pygame pymc pymongo pyparsing pypdf pyproj pytest pytz rasterio rdflib redis regex reportlab requests rich
    scipy scrapy seaborn selenium sentencepiece shap shapely simpy spacy sqlalchemy sqlmodel statsmodels stumpy svgwrite sympy
    tabulate tenacity tensorflow textblob threadpoolctl tiktoken tokenizers toml torch torchvision tornado tqdm transformers
    trimesh typer tzdata ujson vega_datasets vaderSentiment wordcloud xarray xgboost xlrd xlsxwriter xmltodict yfinance
    zarr""".split()
)

_WAYS = {
    "off": "packages are for the operator of this session to install: do without {0}, or tell the user",
    "ask": "%pip install {0} asks for it, or the user has it installed: lair install SESSION {0}",
    "on": "%pip install {0} installs it here, and the session keeps its variables",
}


class PackageError(ImportError):
    """A package cannot be installed here."""

    __module__ = "tools"


def configure(given: Optional[str], requirements: List[str], allow: List[str], deny: List[str]) -> str:
    """In the template. Returns the sentence about packages, for commands that would install some."""
    global policy
    policy = given or "off"
    _allow[:] = allow
    _deny[:] = deny
    due[:] = requirements if policy != "off" else []
    pip.__doc__ = sentence = _way("them" if policy == "off" else "NAME")
    return sentence


def note(cell: int) -> None:
    """Before a cell: since when is what imported? So it can be said how far one has to go back for another version."""
    global _counted, _first
    if policy == "off" or len(_modules) == _counted:
        return
    since = 0 if _first else cell
    for name in list(_modules):
        if "." not in name:
            _since.setdefault(name, since)
    _counted = len(_modules)
    _first = False


# ---- a set ----


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def versions(path: str) -> Dict[str, str]:
    """What is in the set at this path, by project."""
    if path not in _versions:
        _versions[path] = dict(_LOCKED.findall(_read(f"{path}/lock")))
    return _versions[path]


def _imported(site: str) -> Set[str]:
    """The modules of the set that are imported, and not from a set."""
    sets = os.path.dirname(os.path.dirname(site)) + "/"
    names = {name.partition(".")[0] for name in os.listdir(site)}
    found = {name for name in names if name in _modules}
    return {name for name in found if not str(getattr(_modules[name], "__file__", None) or "").startswith(sets)}


def _record(site: str, directory: str) -> str:
    try:
        return _read(f"{site}/{directory}/RECORD")
    except OSError:
        return ""


def _modules_of(site: str, directory: str) -> Set[str]:
    return {re.split(r"[/.,]", line, maxsplit=1)[0] for line in _record(site, directory).splitlines()}


def _version_here(project: str, before: List[str]) -> Optional[str]:
    for found in _distributions(name=project, path=before):
        return found.version
    return None


def _way_out(modules: Set[str]) -> str:
    """What to do about modules that are imported."""
    fitting = "ask for versions that fit with it"
    since = [_since.get(name) for name in modules]
    known = [it for it in since if it is not None]
    if 0 in known:
        return f"every session of this profile begins with it: {fitting}"
    before = f"after cell {min(known) - 2}" if known and min(known) > 2 else "before it was"
    return f"{fitting}, or install them in a branch from the state {before}, and go on there"


def _conflict(site: str, before: List[str]) -> Optional[str]:
    """What is imported already of a project of the set, in another version, and what to do about it."""
    imported = _imported(site)
    for directory in sorted(os.listdir(site)) if imported else ():
        modules = imported & _modules_of(site, directory) if directory.endswith(".dist-info") else set()
        if not modules:
            continue
        project, _, version = directory[: -len(".dist-info")].partition("-")
        here = _version_here(project, before)
        if here is not None and here != version:
            name = project.replace("_", "-").lower()
            return (
                f"{name} {version} would come with them, and {name} {here} is imported already; {_way_out(modules)}"
            )
    return None


def _place(before: List[str]) -> int:
    """Behind Python's own modules, and before all others."""
    if _base and f"{_base['path']}/site" in before:
        return before.index(f"{_base['path']}/site")
    for i, path in enumerate(before):
        if path.endswith(("/site-packages", "/dist-packages")):
            return i
    return len(before)


def grow(name: str, path: str) -> None:
    """From now on the session has that set. It is complete, and stays as it is: no finder has looked there too early."""
    site = f"{path}/site"
    before = [it for it in sys.path if isinstance(it, str)]
    old = f"{_base['path']}/site" if _base else None
    conflict = _conflict(site, [it for it in before if it not in (site, old)])
    if conflict is not None:
        raise PackageError(conflict)
    try:
        hold(f"{path}/lock")
    except OSError:
        raise PackageError("they were removed at this moment: install them again") from None
    place = _place(before)
    sys.path[:] = [it for it in sys.path if it not in (site, old)]
    sys.path.insert(min(place, len(sys.path)), site)
    _base.update(set=name, path=path)
    have(name)
    _take_back(site)


# ---- ahead ----


def _plain(project: str) -> str:
    return re.sub(r"[-_.]+", "-", project).lower()


def _modules_for(site: str, requirements: List[str]) -> List[str]:
    """What the projects that are asked for are imported as."""
    projects = {_plain(found[0]) for found in (re.match(r"[\w.-]+", it) for it in requirements) if found}
    names = []
    for directory in sorted(os.listdir(site)):
        if directory.endswith(".dist-info") and _plain(directory.partition("-")[0]) in projects:
            found = re.findall(
                r"^([A-Za-z]\w*)(?:/__init__\.py|\.py|\.[\w-]+\.so),", _record(site, directory), re.MULTILINE
            )
            names += [it for it in dict.fromkeys(found) if it not in _OWN_TESTS][:_AHEAD]
    return names


def _is_of(site: str, module: Any) -> bool:
    return str(getattr(module, "__file__", None) or "").startswith(f"{site}/")


def prepare(path: str, requirements: List[str]) -> None:
    """Nobody has this interpreter yet, and whoever gets it will ask for this set: what that is asked for is imported ahead. It
    is put aside, for a session that does not ask for it does not have it."""
    site = f"{path}/site"
    try:
        hold(f"{path}/lock")
    except OSError:
        return
    before = set(_modules)
    sys.path.insert(_place([it for it in sys.path if isinstance(it, str)]), site)
    try:
        for name in _modules_for(site, requirements):
            try:
                importlib.import_module(name)
            except BaseException:  # the cell that imports it is told
                continue
    finally:
        sys.path[:] = [it for it in sys.path if it != site]
    _aside[site] = {name: it for name, it in list(_modules.items()) if name not in before and _is_of(site, it)}
    for name in _aside[site]:
        del _modules[name]
    versions(path)
    _conflict(site, sys.path)  # what will be asked then is in memory
    _ahead.update(path=path, requirements=sorted(set(requirements)))
    gc.collect()  # or the first cells would look at each of these objects, and copy it
    gc.freeze()


def _take_back(site: str) -> None:
    """Where something else has taken the place of one meanwhile, it and all in it are imported anew."""
    aside = _aside.pop(site, {})
    taken = {name for name in aside if "." not in name and name in _modules}
    for name, module in aside.items():
        if name.partition(".")[0] not in taken:
            _modules.setdefault(name, module)


def state() -> Dict[str, Any]:
    """To be saved."""
    return {**_base, "asked": list(asked)} if _base else {}


def come_back(saved: Dict[str, Any]) -> Optional[str]:
    """What was saved is there again; or why not."""
    if not saved:
        return None
    path = saved["path"]
    if policy == "off" or not os.path.isdir(f"{path}/site"):
        return f"its packages ({', '.join(saved['asked'])}) are not there any more: install them again"
    try:
        grow(saved["set"], path)
    except Exception as error:
        return str(error)
    asked[:] = saved["asked"]
    return None


# ---- asking for one ----


def _is_ahead(wanted: List[str]) -> bool:
    """The router has given this interpreter to a session that begins with this very set: it need not be asked."""
    return not _base and sorted(wanted) == _ahead.get("requirements")


def _ask(wanted: List[str]) -> Any:
    if _is_ahead(wanted):
        return {"set": os.path.basename(_ahead["path"]), "path": _ahead["path"]}
    arguments: Dict[str, Any] = {"requirements": wanted}
    if _base:
        arguments["base"] = _base["set"]
    try:
        return functions.ask_router("pip install", arguments)
    except functions.FunctionError as error:
        raise PackageError(str(error)) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_GOES_ON.format(", ".join(wanted[:_SHOWN]))) from None


def install(requirements: List[str]) -> List[str]:
    """Returns what is there now and was not before, as NAME VERSION."""
    wanted = [it for it in dict.fromkeys(requirements) if it not in asked]
    if not wanted:
        return []
    before = versions(_base["path"]) if _base else {}
    there = _ask(wanted)
    grow(there["set"], there["path"])
    asked.extend(wanted)
    return [f"{name} {version}" for name, version in versions(_base["path"]).items() if before.get(name) != version]


def _declared(source: str) -> List[str]:
    """What a block of PEP 723 in a cell asks for."""
    found = _BLOCK.search(source)
    if found is None:
        return []
    text = "\n".join(line[2:] for line in found[1].splitlines())
    listed = re.search(r"^dependencies\s*=\s*(\[.*?\])[ \t]*(?:#.*)?$", text, re.MULTILINE | re.DOTALL)
    try:
        wanted = ast.literal_eval(listed[1]) if listed else []
    except (SyntaxError, ValueError):
        wanted = None
    if not isinstance(wanted, list) or not all(isinstance(it, str) for it in wanted):
        raise PackageError("dependencies of the block # /// script: a list of strings")
    return wanted


def begin(packages: List[str], source: str) -> None:
    """Before a cell."""
    wanted = [*due, *packages]
    if policy != "off":
        wanted += _declared(source)
    if wanted:
        fresh = install(wanted)
        del due[:]
        if packages and not source.strip():
            _say(fresh)


# ---- as pip is spoken to ----

_IGNORED = frozenset(
    "-q -qq -qqq --quiet -U --upgrade --user -v --verbose --no-cache-dir --pre --disable-pip-version-check --no-input -y --yes "
    "--system --break-system-packages".split()
)


def pip(line: str) -> None:
    """%pip LINE."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["list"] or words[:1] == ["freeze"]:
        for name, version in versions(_base["path"]).items() if _base else ():
            print(f"{name}=={version}")
        return
    wanted = [it for it in words[1:] if it not in _IGNORED]
    odd = [it for it in wanted if it.startswith("-")]
    if words[:1] != ["install"] or odd or not wanted:
        what = odd[0] if odd else " ".join(words[:1])
        raise PackageError(f"pip {what}: here is pip install NAME..., with versions as NAME==1.2, and pip list")
    _say(install(wanted))


def _say(fresh: List[str]) -> None:
    more = f" and {len(fresh) - _SHOWN} more" if len(fresh) > _SHOWN else ""
    print(f"installed: {', '.join(fresh[:_SHOWN])}{more}" if fresh else "already there")


# A line to pip, or what may look like one and is none: a string, or a comment.
_PIP_LINE = re.compile(
    r"""(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*)
    |^([ \t]*)[%!]?[ \t]*(?:(?:\S*python[\d.]*|\{sys\.executable\})[ \t]+-m[ \t]+|uv[ \t]+)?
    pip3?[ \t]+((?:install|list|freeze)\b[^\n]*)$""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def _plain_line(found: "re.Match[str]") -> str:
    return found[0] if found[2] is None else f"{found[1]}__import__('builtins').__pip__({found[2].strip()!r})"


def plain(source: str) -> str:
    """The cell with plain Python for its lines to pip."""
    if policy == "off" or "pip" not in source:
        return source
    return _PIP_LINE.sub(_plain_line, source)


def _is_allowed(project: str) -> bool:
    name = _plain(project)
    if any(fnmatch.fnmatchcase(name, it) for it in _deny):
        return False
    return not _allow or any(fnmatch.fnmatchcase(name, it) for it in _allow)


def _instead(project: str) -> str:
    """What is to be done without a project that may not be asked for."""
    refused = f"the operator does not allow {project} to be installed here"
    if _allow:
        more = ", ..." if len(_allow) > _SHOWN else ""
        return f"{refused}, only {', '.join(_allow[:_SHOWN])}{more}: do it with one of these, or without"
    return f"{refused}: do it with another project, or without"


def _way(project: str) -> str:
    """How this profile gets a package: the one sentence, wherever somebody asks."""
    return _WAYS[policy].format(project)


def hint(module: str) -> Optional[str]:
    """How to get a module that is not there; nobody is told to ask for what is refused then."""
    name = module.partition(".")[0]
    if not name.isidentifier() or name in sys.builtin_module_names or name in _modules:
        return None
    projects = PROJECTS.get(name, name).split()
    known = name in PROJECTS or name in KNOWN
    if policy == "off":
        return _way(projects[0]) if known else None
    allowed = [it for it in projects if _is_allowed(it)]
    if not allowed:
        return _instead(projects[0])
    if known or _plain(allowed[0]) in map(_plain, _allow):
        return _way(allowed[0])
    return f"{name} is not the name of a known package; if it is one, {_way(allowed[0])}"


vars(__import__("builtins"))["__pip__"] = pip

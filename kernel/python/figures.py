"""matplotlib: a backend of ours, through which plt.show() and the end of a cell show what is open and close it, so
that no figure outlives the cell that made it. It is chosen in matplotlib's settings and not in the environment,
where programs that a cell starts would find a name they cannot import. The libraries are met when they are
imported, by a finder: here is nothing but waiting until then."""

import importlib
import importlib.abc
import importlib.machinery
import io
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

if TYPE_CHECKING:
    from display import (
        Data,
        DisplayHandle,
        clear_output,
        contained,
        display,
        formats,
        publish_display_data,
        send,
        update_display,
    )

_BACKEND = "lair_figures"

# pyplot's own list of open figures, once there is one: C looks whether it is empty.
opened: List[Dict[int, Any]] = []

_shown: List[Any] = []  # explicitly, in this cell
_format = "png"
_BytesIO = io.BytesIO


def set_format(name: Optional[str]) -> None:
    global _format
    _format = name or "png"


# ---- pictures ----


def _picture(figure: Any) -> "Data":
    file = _BytesIO()
    figure.canvas.print_figure(
        file, format=_format, dpi=figure.dpi, bbox_inches="tight", facecolor=figure.get_facecolor()
    )
    figure.stale = False
    if figure not in _shown:
        _shown.append(figure)
    picture = file.getvalue()
    return {"image/svg+xml": picture.decode()} if _format == "svg" else {"image/png": picture}


def _show(figure: Any) -> None:
    """Unless it has been shown as it is."""
    if figure in _shown and not figure.stale:
        return
    data = contained("figure", _picture, figure)
    if data:
        send({"text/plain": repr(figure), **data}, {})


def _show_all() -> None:
    pylab = sys.modules["matplotlib._pylab_helpers"]
    try:
        for manager in list(opened[0].values()):
            contained("figure", _show, manager.canvas.figure)
    finally:
        contained("figure", pylab.Gcf.destroy_all)
        del _shown[:]


def end_cell(quietly: bool) -> None:
    """@quietly: the cell was interrupted, what it has drawn is only thrown away."""
    if quietly:
        opened[0].clear()
        del _shown[:]
    else:
        _show_all()


formats["matplotlib.figure", "Figure"] = _picture


# ---- the backend ----


def _make_backend(module: Any) -> None:
    bases = importlib.import_module("matplotlib.backend_bases")
    agg = importlib.import_module("matplotlib.backends.backend_agg")
    figures = importlib.import_module("matplotlib.figure")

    class FigureManager(bases.FigureManagerBase):  # type: ignore[misc, name-defined]
        def show(self) -> None:
            _show(self.canvas.figure)

    class FigureCanvas(agg.FigureCanvasAgg):  # type: ignore[misc, name-defined]
        manager_class = FigureManager

    def new_figure_manager_given_figure(number: int, figure: Any) -> Any:
        return FigureManager(FigureCanvas(figure), number)

    def new_figure_manager(number: int, *arguments: Any, FigureClass: Any = figures.Figure, **options: Any) -> Any:
        return new_figure_manager_given_figure(number, FigureClass(*arguments, **options))

    def show(*unused: Any, **unused_options: Any) -> None:
        if opened:
            _show_all()

    for thing in (FigureManager, FigureCanvas, new_figure_manager_given_figure, new_figure_manager, show):
        thing.__module__ = _BACKEND
        setattr(module, thing.__name__, thing)


# ---- meeting libraries ----


def _meet_matplotlib(module: Any) -> None:
    module.rcParams["backend"] = f"module://{_BACKEND}"


def _meet_pylab(module: Any) -> None:
    opened[:] = [module.Gcf.figs]


def _meet_ipython(module: Any) -> None:
    """Its display() is for IPython's own shell, which there is none of."""
    for ours in (display, update_display, clear_output, publish_display_data, DisplayHandle):
        if hasattr(module, ours.__name__):
            setattr(module, ours.__name__, ours)


_met: Dict[str, Callable[[Any], None]] = {
    "matplotlib": _meet_matplotlib,
    "matplotlib._pylab_helpers": _meet_pylab,
    "IPython.core.display": _meet_ipython,
    "IPython.core.display_functions": _meet_ipython,
}


class _BackendLoader(importlib.abc.Loader):
    def exec_module(self, module: ModuleType) -> None:
        _make_backend(module)


class _MeetingLoader(importlib.abc.Loader):
    """Another's loader, and what is to be done to the module afterwards."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        module: Optional[ModuleType] = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        contained(module.__name__, _met[module.__name__], module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name == _BACKEND:
            return importlib.machinery.ModuleSpec(name, _BackendLoader())
        if name not in _met:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _MeetingLoader(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())

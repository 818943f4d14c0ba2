"""matplotlib: a backend of ours. With it plt.show() and the end of a cell show all open figures and close them, so no
figure outlives the cell that made it. It is chosen in matplotlib's settings and not in the environment, because
programs that a cell starts could not import it. Nothing here imports matplotlib: see
libraries.py."""

import importlib
import io
from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from display import Data, contained, formats, further_forms, send

BACKEND = "lair_figures"

# pyplot's own list of open figures, once there is one. C looks whether it is empty.
opened: List[Dict[int, Any]] = []

_managers: Any = None  # pyplot's class that holds them
_shown: List[Any] = []  # the figures that this cell has shown
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
    if opened and any(manager.canvas.figure is figure for manager in opened[0].values()):
        _shown.append(figure)
    picture = file.getvalue()
    return {"image/svg+xml": picture.decode()} if _format == "svg" else {"image/png": picture}


def _show(figure: Any) -> None:
    """Shows the figure, unless it was shown as it is now."""
    if figure in _shown and not figure.stale:
        return
    data = contained("figure", _picture, figure)
    if data:
        send({"text/plain": repr(figure), **data, **further_forms(figure)}, {})


def show_all() -> None:
    try:
        for manager in list(opened[0].values()):
            contained("figure", _show, manager.canvas.figure)
    finally:
        contained("figure", _managers.destroy_all)
        del _shown[:]


def end_cell(quietly: bool) -> None:
    """@quietly: the cell was interrupted, so its figures are only thrown away."""
    if quietly:
        opened[0].clear()
        del _shown[:]
    else:
        show_all()


formats["matplotlib.figure", "Figure"] = _picture


# ---- the backend ----


def make_backend(module: Any) -> None:
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
            show_all()

    for thing in (FigureManager, FigureCanvas, new_figure_manager_given_figure, new_figure_manager, show):
        thing.__module__ = BACKEND
        setattr(module, thing.__name__, thing)


def watch_figures(managers: Any) -> None:
    """@managers: the class in which pyplot keeps its figures."""
    global _managers
    _managers = managers
    opened[:] = [managers.figs]

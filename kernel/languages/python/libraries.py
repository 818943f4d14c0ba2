"""Libraries that must be adapted to a session. A finder does this when they are imported; until then they are not
touched."""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence

if TYPE_CHECKING:
    import seeds
    from display import (
        DisplayHandle,
        clear_output,
        contained,
        display,
        publish_display_data,
        shows_saved,
        text_of,
        update_display,
    )
    from figures import BACKEND, make_backend, opened, show_all, watch_figures

_ModuleSpec = importlib.machinery.ModuleSpec
_PathFinder = importlib.machinery.PathFinder


def _meet_matplotlib(module: Any) -> None:
    module.rcParams["backend"] = f"module://{BACKEND}"


def _meet_pylab(module: Any) -> None:
    watch_figures(module.Gcf)


def _meet_ipython(module: Any) -> None:
    """IPython's display() needs IPython's own shell, which is not there."""
    for ours in (display, update_display, clear_output, publish_display_data, DisplayHandle):
        if hasattr(module, ours.__name__):
            setattr(module, ours.__name__, ours)


def _meet_pdb(module: Any) -> None:
    """At the end of its input, pdb would end without a word."""
    own = module.Pdb.do_EOF

    def do_eof(debugger: Any, argument: str) -> Any:
        print(
            "\nno more answers for the debugger: run the cell with input, or look at sys.last_traceback",
            file=sys.stderr,
        )
        return own(debugger, argument)

    module.Pdb.do_EOF = do_eof


def _meet_tqdm(module: Any) -> None:
    """tqdm's thread would be copied with each checkpoint. It only refreshes bars that are updated too rarely."""
    module.tqdm.monitor_interval = 0


def _meet_plotly(module: Any) -> None:
    """plotly's own show() would open a browser, or needs packages that only a notebook has."""
    renderers = module.renderers
    renderers.default = "plotly_mimetype"

    def show(fig: Any, renderer: Any = None, validate: bool = True, **options: Any) -> None:
        if renderer is None and not options and not isinstance(fig, dict):
            display(fig)
            return
        known = module.validate_coerce_fig_to_dict(fig, validate)
        data = renderers._build_mime_bundle(known, renderers_string=renderer, **options)
        if data:
            display({"text/plain": text_of(fig), **data}, raw=True)
        renderers._perform_external_rendering(known, renderers_string=renderer, **options)

    module.show = show


def _meet_altair(module: Any) -> None:
    """A chart's own show() is IPython's, which may be missing."""
    own = module.TopLevelMixin.show

    def show(chart: Any) -> None:
        if module.renderers.active == "browser":
            own(chart)
        else:
            display(chart)

    module.TopLevelMixin.show = show


def _meet_pillow(module: Any) -> None:
    """PIL's own viewers are programs, or IPython's display()."""

    class Viewer(module.Viewer):  # type: ignore[misc]
        def show_image(self, image: Any, **options: Any) -> bool:
            display(image)
            return True

    module.register(Viewer(), 0)


def _meet_images(module: Any) -> None:
    """A client that asks for further forms sees an image when it is saved under a name, too."""
    own = module.Image.save

    def save(image: Any, fp: Any, format: Optional[str] = None, **options: Any) -> None:
        if shows_saved() and isinstance(fp, str):
            display(image)
        own(image, fp, format, **options)

    module.Image.save = save


def _meet_interaction(module: Any) -> None:
    """The plots of an interaction belong into its own output, so they are shown when its function returns."""

    def show_plots() -> None:
        if opened and opened[0]:
            show_all()

    module.show_inline_matplotlib_plots = show_plots


_met: Dict[str, Callable[[Any], None]] = {
    "numpy.random": seeds.watch,
    "matplotlib": _meet_matplotlib,
    "matplotlib._pylab_helpers": _meet_pylab,
    "pdb": _meet_pdb,
    "tqdm.std": _meet_tqdm,
    "plotly.io._renderers": _meet_plotly,
    "altair": _meet_altair,
    "PIL.Image": _meet_images,
    "PIL.ImageShow": _meet_pillow,
    "ipywidgets.widgets.interaction": _meet_interaction,
    "IPython.core.display": _meet_ipython,
    "IPython.core.display_functions": _meet_ipython,
}


def meet(name: str, function: Callable[[Any], None]) -> None:
    """Have the library of that name adapted by a function of another module."""
    _met[name] = function


class _BackendLoader(importlib.abc.Loader):
    def exec_module(self, module: ModuleType) -> None:
        make_backend(module)


class _MeetingLoader(importlib.abc.Loader):
    """The loader of a library, and the function that adapts the module afterwards."""

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
        if name == BACKEND:
            return _ModuleSpec(name, _BackendLoader())
        if name not in _met:
            return None
        spec = _PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _MeetingLoader(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())

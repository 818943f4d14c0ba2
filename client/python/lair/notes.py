"""What must be told of a result beside its output, in the words of proto/causes.h. client/base/result.c is the same for the
programs in C."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from . import causes

if TYPE_CHECKING:
    from .result import Effects, Ended, Result

# How many items of a list a sentence tells.
LISTED = 8


class Style(NamedTuple):
    """How a caller tells. `models` hear also of what people see by themselves. `hints` stand behind what a cause did,
    `renew` behind that the session is new."""

    models: bool = False
    hints: dict[str, str] = {}
    renew: str = ""


PYTHON = Style(hints={causes.TIMEOUT: "; timeout= gives it more"})
MODELS = Style(True, {causes.TIMEOUT: "; timeout_sec gives it more"}, ": run again what you need of it")


def listed(items: Iterable[object], more: int = 0) -> str:
    """As in "a, b and 2 more"."""
    words = [str(item) for item in items]
    more += len(words[LISTED:])
    return ", ".join(words[:LISTED]) + (f"{' and ' if words else ''}{more} more" if more else "")


def told(result: Result, style: Style = PYTHON) -> dict[str, str]:
    """The notes by their names, in the order of the table; without capital letters and full stops."""
    every = ((name, _MAKERS[name](text, result, style)) for name, text in causes.NOTES.items())
    return {name: note for name, note in every if note}


def sentences(notes: Iterable[str]) -> str:
    return " ".join(f"{note[0].upper()}{note[1:]}." for note in notes)


def not_undone(effects: Effects) -> str:
    return causes.NOTES["effects"] % listed(effects.items, effects.more) if effects else ""


def renewed(how: Ended | None, came_back: bool, style: Style) -> str:
    """That the session is a new one, unless people know what they have shut down."""
    if how is None or (how.why == causes.SHUTDOWN and not how.by_root and not style.models):
        return ""
    return causes.NOTES["ended"] % (
        how,
        "files and all that did not come back" if came_back else "variables and files",
        style.renew,
    )


def how_ended(why: str) -> str:
    cause = causes.CAUSES.get(why)
    return (cause and cause.session) or causes.DEATH_SESSION % why


def happened(result: Result, style: Style = PYTHON) -> str:
    """What the cause did to the code, without the fate of the session. Empty: nothing, or the error tells it."""
    if result.cause is None:
        return ""
    cause = causes.CAUSES.get(result.cause)
    if cause is None:
        return causes.DEATH_CELL % result.cause
    of = result.returncode if result.cause == causes.EXIT else result.limit
    words = cause.cell if cause.measure is None or of is None else cause.measure % f"{of:g}"
    return "" if words is None else words + style.hints.get(result.cause, "")


def goes_on(result: Result) -> bool:
    fate = causes.FATES.get(result.state)
    return fate is not None and fate.goes_on


def _before(result: Result) -> bool:
    """If the code came to its end by itself and the session did not go on, that was before the code."""
    own = result.text is not None or result.error is not None or (result.ok and result.cause != causes.EXIT)
    return own and not goes_on(result) and result.state != causes.ENDED


# ---- the notes ----


def _ended(text: str, result: Result, style: Style) -> str:
    return renewed(result.ended, result.loaded is not None, style)


def _damaged(text: str, result: Result, style: Style) -> str:
    why = result.damaged or (result.ended and result.ended.not_saved)
    return text % why if why else ""


def _loaded(text: str, result: Result, style: Style) -> str:
    saved = result.loaded
    if saved is None:
        return ""
    n = len(saved.names)
    missing = listed(f"{name} ({why})" for name, why in saved.missing.items())
    return text % (saved.told_age, f"{n} name{'' if n == 1 else 's'}" + (f"; not {missing}" if missing else ""))


def _blocked(text: str, result: Result, style: Style) -> str:
    return text % listed(f"{it.target or it.event} ({it.reason})" for it in result.caught) if result.caught else ""


def _cause(text: str, result: Result, style: Style) -> str:
    cause = causes.CAUSES.get(result.cause or "")
    if goes_on(result) or result.session is None:
        silent = result.ok if style.models else cause is not None and not cause.news
        if silent:
            return ""
    return "" if _before(result) else happened(result, style)


def _fate(text: str, result: Result, style: Style) -> str:
    fate = causes.FATES.get(result.state)
    if fate is None or result.session is None:
        return ""
    if fate.goes_on:
        unchanged = causes.FATE_UNCHANGED if result.cause == causes.FORBIDDEN else fate.text
        return unchanged if style.models and not result.ok else ""
    state = f"the state after cell {result.restored}" if result.restored else "the state before the first cell"
    parts = (state, "variables" if result.back.stay else "variables and files")
    before = causes.FATE_BEFORE if _before(result) else ""
    lost = f" ({result.cause})" if before and result.ok and result.cause else ""
    return text % (fate.text % parts[: fate.text.count("%s")], before + lost)


def _back(text: str, result: Result, style: Style) -> str:
    back = result.back
    return text % listed(back.items, back.more) if back.items or back.more else ""


def _stay(text: str, result: Result, style: Style) -> str:
    return text % result.back.stay if result.back.stay else ""


def _effects(text: str, result: Result, style: Style) -> str:
    return not_undone(result.effects)


def _unkept(text: str, result: Result, style: Style) -> str:
    return text % result.files_unkept if result.files_unkept else ""


def _unfaithful(text: str, result: Result, style: Style) -> str:
    lost = result.unfaithful is not None and result.session is not None
    return text % (result.cell, result.unfaithful) if lost else ""


def _streams(text: str, stdout: int, stderr: int) -> str:
    return "; ".join(text % (n, name) for n, name in ((stdout, "stdout"), (stderr, "stderr")) if n)


def _stray(text: str, result: Result, style: Style) -> str:
    return _streams(text, result.reply.stdout_stray, result.reply.stderr_stray)


def _dropped(text: str, result: Result, style: Style) -> str:
    return _streams(text, result.stdout_dropped, result.stderr_dropped)


def _displays(text: str, result: Result, style: Style) -> str:
    return text % result.reply.displays_dropped if result.reply.displays_dropped else ""


def _artifacts(text: str, result: Result, style: Style) -> str:
    return text if result.reply.artifacts_more and result.session is not None else ""


_MAKERS: dict[str, Callable[[str, Result, Style], str]] = {name: globals()[f"_{name}"] for name in causes.NOTES}

"""Further forms of values, for a client that draws by itself: what a figure shows as numbers and texts, a table column by
column, containers as JSON. Only cells that ask for them have these. Nothing here imports matplotlib or pandas."""

import datetime
import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from display import Data, contained, further, left

_COLUMNS = "application/vnd.lair.columns+json"
_CHART = "application/vnd.lair.chart+json"
_FURTHER_MAX = 100000
_UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")

_dumps, _isclose, _isfinite = json.dumps, math.isclose, math.isfinite
_date = datetime.date
_loaded: Dict[str, Any] = sys.modules


# ---- values that JSON has ----


def _plain(value: Any) -> Any:
    """A value of numpy or pandas as one of Python's own, and a date as its ISO form."""
    item = getattr(value, "item", None)
    if type(value).__name__ == "datetime64":
        return str(value.astype("datetime64[s]"))
    if callable(item) and not isinstance(value, _date):
        value = value.item()
    if isinstance(value, _date):
        return value.isoformat()
    if isinstance(value, float) and not _isfinite(value):
        return None
    return value


def _jsonable(value: Any) -> Any:
    listed = getattr(value, "tolist", None)
    return listed() if callable(listed) else str(value)


def _container(value: Any) -> "Data":
    if left(value, _FURTHER_MAX) < 0:
        return {}
    try:
        return {"application/json": _dumps(value, default=_jsonable, allow_nan=False)}
    except (TypeError, ValueError, RecursionError):
        return {}


def _table(frame: Any) -> "Data":
    if frame.size > _FURTHER_MAX:
        return {}
    columns = {str(name): [_plain(item) for item in frame.iloc[:, i]] for i, name in enumerate(frame.columns)}
    return {_COLUMNS: _dumps(columns, default=str)}


# ---- what a figure shows ----


def _rounded(value: Any) -> float:
    return float(f"{float(value):.7g}")


def _texts(labels: Any) -> List[str]:
    return [label.get_text() for label in labels]


def _unit(label: Optional[str]) -> Optional[str]:
    found = _UNIT.search(label or "")
    return (found.group(1) or found.group(2)) if found else None


def _is_rule(line: Any) -> bool:
    """A line of a grid, and the like."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


def _kind(axes: Any) -> str:
    lines, patches, collections = list(axes.lines), list(axes.patches), list(axes.collections)
    names = {type(patch).__name__ for patch in patches}
    if axes.images or axes.artists or axes.tables:
        return "unknown"
    if not patches and not collections:
        return "line"
    if names == {"PathPatch"} and not collections:
        return "box_and_whisker"
    if any(not _is_rule(line) for line in lines):
        return "unknown"
    if not patches:
        return "scatter" if {type(one).__name__ for one in collections} == {"PathCollection"} else "unknown"
    if collections:
        return "unknown"
    return {frozenset({"Wedge"}): "pie", frozenset({"Rectangle"}): "bar"}.get(frozenset(names), "unknown")


def _flip(chart: Dict[str, Any]) -> None:
    """The values of lying bars are on the x axis."""
    chart["x_label"], chart["y_label"] = chart["y_label"], chart["x_label"]
    chart["x_unit"], chart["y_unit"] = chart["y_unit"], chart["x_unit"]


def _scale(axis: Any, dates: bool, ticks: List[Any], labels: List[str]) -> str:
    if dates:
        return "datetime"
    scale = str(axis.get_scale())
    if scale == "linear" and all(
        tick == i and label != str(i) for i, (tick, label) in enumerate(zip(ticks, labels))
    ):
        return "categorical"
    return scale


def _axis(chart: Dict[str, Any], name: str, axis: Any) -> None:
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    dates = "DateConverter" in type(converter).__name__
    labels, ticks = _texts(axis.get_ticklabels()), list(axis.get_ticklocs())
    if dates:
        ticks = [_loaded["matplotlib.dates"].num2date(tick).isoformat() for tick in ticks]
    else:
        ticks = [float(tick) for tick in ticks]
    chart[f"{name}_scale"] = _scale(axis, dates, ticks, labels)
    chart[f"{name}_ticks"] = ticks
    chart[f"{name}_tick_labels"] = labels


def _points(label: str, pairs: Any) -> Dict[str, Any]:
    return {"label": label, "points": [[_plain(x), _plain(y)] for x, y in pairs]}


def _line(chart: Dict[str, Any], axes: Any) -> None:
    _axis(chart, "x", axes.xaxis)
    _axis(chart, "y", axes.yaxis)
    for line in axes.lines:
        label = str(line.get_label())
        if not _is_rule(line):
            name = f"Line {label[6:]}" if label.startswith("_child") else label
            chart["elements"].append(_points(name, zip(line.get_xdata(), line.get_ydata())))


def _scatter(chart: Dict[str, Any], axes: Any) -> None:
    _axis(chart, "x", axes.xaxis)
    _axis(chart, "y", axes.yaxis)
    for dots in axes.collections:
        chart["elements"].append(_points(str(dots.get_label()), dots.get_offsets()))


def _pie(chart: Dict[str, Any], axes: Any) -> None:
    chart["elements"] += [
        {
            "label": wedge.get_label(),
            "angle": abs(_rounded(float(wedge.theta2) - float(wedge.theta1))),
            "radius": float(wedge.r),
        }
        for wedge in axes.patches
    ]


def _bar(chart: Dict[str, Any], axes: Any) -> None:
    for container in axes.containers:
        group = str(container.get_label())
        if group.startswith("_container"):
            group = f"Group {group[10:]}"
        lying = getattr(container, "orientation", "vertical") == "horizontal"
        labels = _texts(axes.get_yticklabels() if lying else axes.get_xticklabels())
        if lying and container is axes.containers[0]:
            _flip(chart)
        for label, bar in zip(labels, container):
            value = bar.get_width() if lying else bar.get_height()
            chart["elements"].append({"label": label, "group": group, "value": _plain(value)})


def _box_lines(
    box: Dict[str, Any], lines: List[Tuple[List[float], List[float]]], edges: Tuple[float, float]
) -> None:
    """What the lines within the breadth of a box say of it: its median, the ends of its whiskers, what lies beyond."""
    bottom, top = box["first_quartile"], box["third_quartile"]
    for across, along in lines:
        if not across or not all(edges[0] <= at <= edges[1] for at in across):
            continue
        if len(along) == 2 and across[0] != across[1]:
            if along[0] == along[1] and bottom <= along[0] <= top:
                box["median"] = along[0]
        elif len(along) == 2 and _isclose(max(along), bottom, rel_tol=1e-6):
            box["min"] = min(along)
        elif len(along) == 2 and _isclose(min(along), top, rel_tol=1e-6):
            box["max"] = max(along)
        else:
            box["outliers"] += along


def _box(chart: Dict[str, Any], axes: Any) -> None:
    shapes = [patch.get_path().vertices for patch in axes.patches]
    spans = [tuple((_rounded(part.min()), _rounded(part.max())) for part in (s[:, 0], s[:, 1])) for s in shapes]
    lying = len(spans) > 0 and all(_isclose(y[1] - y[0], spans[0][1][1] - spans[0][1][0]) for _, y in spans)
    lying = lying and not all(_isclose(x[1] - x[0], spans[0][0][1] - spans[0][0][0]) for x, _ in spans)
    labels = _texts(axes.get_yticklabels() if lying else axes.get_xticklabels())
    lines = [
        ([_rounded(x) for x in line.get_xdata()], [_rounded(y) for y in line.get_ydata()]) for line in axes.lines
    ]
    if lying:
        _flip(chart)
        lines = [(y, x) for x, y in lines]
    for label, (x, y) in zip(labels, spans):
        edges, (bottom, top) = (y, x) if lying else (x, y)
        box = {"label": label, "min": bottom, "first_quartile": bottom, "median": bottom}
        box.update(third_quartile=top, max=top, outliers=[])
        _box_lines(box, lines, edges)
        chart["elements"].append(box)


_KINDS = {"line": _line, "scatter": _scatter, "pie": _pie, "bar": _bar, "box_and_whisker": _box}


def _chart(axes: Any) -> Dict[str, Any]:
    kind = _kind(axes)
    chart: Dict[str, Any] = {"type": kind, "title": axes.get_title() or None, "elements": []}
    if kind not in ("unknown", "pie"):
        for name in "xy":
            label = getattr(axes, f"get_{name}label")() or None
            chart.update({f"{name}_label": label, f"{name}_unit": _unit(label)})
    if kind in _KINDS:
        _KINDS[kind](chart, axes)
    return chart


def _figure(figure: Any) -> "Data":
    """After it was drawn: only then its ticks have their texts."""
    axes = figure.get_axes()
    if not any(one.has_data() for one in axes):
        return {}
    chart = _chart(axes[0])
    if len(axes) > 1:
        title = figure._suptitle.get_text() if figure._suptitle else None
        chart = {"type": "superchart", "title": title, "elements": [_chart(one) for one in axes]}
    text = contained("chart", _dumps, chart, default=str)
    return {_CHART: text} if text else {}


further["builtins", "list"] = further["builtins", "dict"] = _container
further["pandas.core.frame", "DataFrame"] = _table
further["matplotlib.figure", "Figure"] = _figure

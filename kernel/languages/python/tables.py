"""Tables as JSON: the shape, each column with its type, and the first rows, whatever the size of the whole."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from display import Data, cut, for_programs, left, summary

_ROWS_MAX = 100
_COLUMNS_MAX = 100
_CELL_MAX = 1000
_CELL_ROOM = 100


def _cell_text(value: object) -> str:
    """A value that JSON cannot hold becomes text."""
    return cut(str(value), _CELL_MAX)


def _cell(value: Any) -> Any:
    """A value in a table. If a text, an array or another container is too long, the beginning of its text."""
    if type(value) is str:
        return cut(value, _CELL_MAX)
    if type(value) in (list, tuple, dict):
        return value if left(value, _CELL_ROOM) >= 0 else cut(summary(value), _CELL_MAX)
    return _cell_text(value) if hasattr(type(value), "__len__") else value


def _column(column: Any) -> Any:
    return column.map(_cell) if column.dtype.kind == "O" else column


def _dataframe(frame: Any) -> "Data":
    part = frame.iloc[:_ROWS_MAX, :_COLUMNS_MAX]
    if any(kind.kind == "O" for kind in part.dtypes):
        part = part.apply(_column)
    rows = part.to_json(orient="split", date_format="iso", default_handler=_cell_text)
    head = json.dumps(
        {
            "shape": list(frame.shape),
            "dtypes": [str(kind) for kind in frame.dtypes.iloc[:_COLUMNS_MAX]],
            "truncated": part.shape != frame.shape,
        }
    )
    return {"application/json": f"{head[:-1]}, {rows[1:]}"}


def _series(series: Any) -> "Data":
    name = series.name if isinstance(series.name, str) else "values" if series.name is None else str(series.name)
    return _dataframe(series.to_frame(name))


for_programs["pandas.core.frame", "DataFrame"] = _dataframe
for_programs["pandas.core.series", "Series"] = _series

"""Tables as JSON: the shape, each column with its type, and the first rows, whatever the size of the whole."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from display import Data, cut, formats

_ROWS_MAX = 100
_COLUMNS_MAX = 100
_CELL_MAX = 1000


def _cell_text(value: object) -> str:
    """For what JSON has no word for."""
    return cut(str(value), _CELL_MAX)


def _dataframe(frame: Any) -> "Data":
    part = frame.iloc[:_ROWS_MAX, :_COLUMNS_MAX]
    rows = part.to_json(orient="split", date_format="iso", default_handler=_cell_text)
    head = json.dumps(
        {
            "shape": list(frame.shape),
            "dtypes": [str(kind) for kind in part.dtypes],
            "truncated": part.shape != frame.shape,
        }
    )
    return {"application/json": f"{head[:-1]}, {rows[1:]}"}


def _series(series: Any) -> "Data":
    name = series.name if isinstance(series.name, str) else "values" if series.name is None else str(series.name)
    return _dataframe(series.to_frame(name))


formats["pandas.core.frame", "DataFrame"] = _dataframe
formats["pandas.core.series", "Series"] = _series

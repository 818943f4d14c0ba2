"""Questions about the state of a session, each answered by one function. None of them changes a name, except
those that are asked to."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    import checking
    import completion
    import inspection
    import variables


class Question(NamedTuple):
    code: str
    cursor: int
    source: bool
    words: List[str]
    names: Dict[Any, Any]  # of __main__
    builtins: Dict[Any, Any]
    flags: int  # of the compiler
    home: str  # the workspace


def _cursor(asked: Question) -> int:
    return min(asked.cursor or len(asked.code), len(asked.code))


_ANSWERS: Dict[str, Callable[[Question], Dict[str, Any]]] = {
    "complete": lambda asked: completion.complete(asked.code, _cursor(asked), asked.names, asked.builtins),
    "inspect": lambda asked: inspection.ask(asked.code, _cursor(asked), asked.source, asked.names, asked.builtins),
    "vars": lambda asked: variables.listed(asked.names, asked.words),
    "keep": lambda asked: variables.keep(asked.names, asked.builtins, asked.words, asked.home),
    "is_complete": lambda asked: checking.is_complete(asked.code, asked.flags),
    "check": lambda asked: checking.check(asked.code, asked.flags, asked.names),
}


def answer(kind: str, *asked: Any) -> Tuple[Optional[Dict[str, Any]], Optional[str]]:
    """The answer, or what is wrong with the question."""
    try:
        return _ANSWERS[kind](Question(*asked)), None
    except variables.Refused as refused:
        return None, str(refused)

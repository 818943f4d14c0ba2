"""Code looked at without being run: whether it compiles, whether it is all there, and whether it breaks a rule of the
profile. The rules are advice to the author of the code, and no guard: they see only the syntax."""

import ast
import codeop
import re
import warnings
from ast import (
    AST,
    AnnAssign,
    Assign,
    Attribute,
    Call,
    Constant,
    Import,
    ImportFrom,
    Load,
    Module,
    Name,
    NamedExpr,
)
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

if TYPE_CHECKING:
    import magics
    import objects
    import source

_compile = compile
_DictNode = ast.Dict
_Keyword = ast.keyword
_PARSE = ast.PyCF_ONLY_AST
_compile_command = codeop.compile_command
_warnings = warnings
_catch_warnings = warnings.catch_warnings
_simplefilter = warnings.simplefilter
_CONTEXT = 500
_TARGETS = 16  # at most so many meanings of one name are followed,
_LENGTH = 200  # and only up to this length: code may make them longer and longer
_LINE_END = re.compile(r"\r\n|\r|\n")

Names = Dict[Any, Any]


class Rule(NamedTuple):
    kind: str
    name: str
    most: int
    message: str
    text: str


class Use(NamedTuple):
    """Something that a rule may be about: its kind, the names that it goes by, and its line."""

    kind: str
    names: Set[str]
    line: int
    column: int


_rules: List[Rule] = []


def configure(rules: List[str]) -> None:
    for rule in rules:
        head, _, message = rule.partition(":")
        words = head.split()
        most = int(words[3]) if len(words) > 2 else 0
        _rules.append(Rule(words[0], words[1], most, message.strip(), " ".join(words)))


# ---- what the syntax shows ----


def _walk(tree: AST) -> Iterator[AST]:
    """As ast.walk, which a cell may have broken."""
    waiting: List[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, AST):
            yield node
            waiting += [getattr(node, field, None) for field in node._fields]
        elif type(node) is list:
            waiting += node


def _constant(node: AST) -> Optional[str]:
    return node.value if isinstance(node, Constant) and type(node.value) is str else None


def _looked_up(node: Call) -> Optional[Tuple[AST, str]]:
    """For getattr(value, "name"): value and name."""
    if isinstance(node.func, Name) and node.func.id == "getattr" and len(node.args) > 1:
        name = _constant(node.args[1])
        return None if name is None else (node.args[0], name)
    return None


def _imported(node: Call) -> Optional[str]:
    """The module in __import__("a.b") and importlib.import_module("a.b")."""
    name = getattr(node.func, "id", getattr(node.func, "attr", None))
    return _constant(node.args[0]) if name in ("__import__", "import_module") and node.args else None


class _Reader:
    """Follows names to what they were bound to, by statements of this code or earlier in the session."""

    def __init__(self, tree: AST, names: Names) -> None:
        self._session = names
        self._bound: Dict[str, Set[str]] = {}
        self._stars: Set[str] = set()
        self._nodes = sorted(
            _walk(tree), key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        )
        for node in self._nodes:
            self._bind(node)

    def _parts(self, node: AST) -> List[str]:
        """The names of a.b.c, the first one last; empty for anything else."""
        parts: List[str] = []
        while True:
            found = _looked_up(node) if isinstance(node, Call) else None
            if isinstance(node, Attribute):
                parts.append(node.attr)
                node = node.value
            elif found is not None:
                parts.append(found[1])
                node = found[0]
            elif isinstance(node, Call) and _imported(node):
                return [*parts, *reversed(str(_imported(node)).split("."))]
            elif isinstance(node, Name):
                return [*parts, node.id]
            else:
                return []

    def _in_session(self, name: str) -> Set[str]:
        value: Any = self._session.get(name)
        if type(value) is ModuleType:
            module = objects.own_names(value).get("__name__")
            return {module} if type(module) is str else set()
        if type(value) in (FunctionType, BuiltinFunctionType) or objects.is_type(value):
            module = objects.attribute(value, "__module__")
            own = objects.title(value) if objects.is_type(value) else value.__name__
            return {f"{module}.{own}"} if type(module) is str else set()
        return set()

    def resolved(self, node: AST) -> Set[str]:
        """The dotted names that a node may stand for, besides the one that is written there."""
        parts = self._parts(node)
        if not parts:
            return set()
        root, rest = parts[-1], parts[-2::-1]
        targets = self._bound.get(root)
        if targets is None:
            targets = self._in_session(root) | {f"{star}.{root}" for star in self._stars}
        if isinstance(node, Call) or _imported_root(node):
            targets = targets | {root}
        return {".".join([target, *rest]) for target in targets}

    def written(self, node: AST) -> Set[str]:
        parts = self._parts(node)
        return {".".join(reversed(parts))} if parts else set()

    def _bind(self, node: AST) -> None:
        if isinstance(node, Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self._add(name, {alias.name if alias.asname else name})
        elif isinstance(node, ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    self._stars.add(node.module)
                else:
                    self._add(alias.asname or alias.name, {f"{node.module}.{alias.name}"})
        elif isinstance(node, Assign):
            for target in node.targets:
                if isinstance(target, Name):
                    self._add(target.id, self.resolved(node.value))
        elif isinstance(node, (AnnAssign, NamedExpr)) and isinstance(node.target, Name) and node.value:
            self._add(node.target.id, self.resolved(node.value))

    def _add(self, name: str, targets: Set[str]) -> None:
        known = self._bound.setdefault(name, set()) if targets else set()
        known.update(sorted(target for target in targets if len(target) < _LENGTH)[: _TARGETS - len(known)])

    def uses(self) -> Iterator[Use]:
        for node in self._nodes:
            place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            for kind, names in self._uses_in(node):
                yield Use(kind, names, *place)

    def _uses_in(self, node: AST) -> Iterator[Tuple[str, Set[str]]]:
        if isinstance(node, Import):
            yield "module", {alias.name for alias in node.names}
        elif isinstance(node, ImportFrom) and not node.level:
            yield "module", {f"{node.module}.{alias.name}" for alias in node.names}
            yield "attribute", {alias.name for alias in node.names}
        elif isinstance(node, Call):
            yield from self._uses_in_call(node)
        elif isinstance(node, _Keyword) and node.arg is not None:
            yield "keyword", {node.arg}
        elif isinstance(node, _Keyword) and isinstance(node.value, _DictNode):
            yield "keyword", {_constant(key) or "" for key in node.value.keys if key is not None}
        elif isinstance(node, (Attribute, Name)) and isinstance(node.ctx, Load):
            yield "module", self.resolved(node)
            if isinstance(node, Attribute):
                yield "attribute", {node.attr}

    def _uses_in_call(self, node: Call) -> Iterator[Tuple[str, Set[str]]]:
        yield "call", self.written(node.func) | self.resolved(node.func)
        found, module = _looked_up(node), _imported(node)
        if found:
            yield "attribute", {found[1]}
        if module:
            yield "module", {module}


def _imported_root(node: AST) -> bool:
    """Whether a chain of attributes begins with a call that imports."""
    while isinstance(node, Attribute):
        node = node.value
    return isinstance(node, Call) and _imported(node) is not None


# ---- rules ----


def _matches(rule: Rule, use: Use) -> bool:
    if rule.kind != use.kind:
        return False
    if rule.kind == "module":
        return any(f"{name}.".startswith(f"{rule.name}.") for name in use.names)
    return rule.name in use.names


def _first_broken(tree: AST, names: Names) -> Optional[Tuple[Use, Rule]]:
    if not _rules:
        return None
    counts = dict.fromkeys(_rules, 0)
    for use in _Reader(tree, names).uses():
        for rule in _rules:
            if _matches(rule, use):
                counts[rule] += 1
                if counts[rule] > rule.most:
                    return use, rule
    return None


def forbidden(text: str, flags: int, names: Names) -> Optional[str]:
    """The sentence about a cell that breaks a rule; None if it breaks none, or does not compile."""
    try:
        broken = _first_broken(_parse(text, flags), names)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return None if broken is None else f"line {broken[0].line}: {broken[1].message}"


# ---- the questions ----


def _parse(text: str, flags: int) -> Module:
    with _catch_warnings(module=_warnings):
        _simplefilter("ignore")
        tree: Module = _compile(text, "<check>", "exec", flags | _PARSE, True)
        _compile(tree, "<check>", "exec", flags, True)
    return tree


def _parse_any(code: str, flags: int) -> Module:
    try:
        return _parse(code, flags)
    except SyntaxError as error:
        return _parse(_in_python(code, error), flags)


def _in_python(code: str, error: SyntaxError) -> str:
    """The Python that IPython makes of it. If it makes none, raises the error."""
    plain = magics.plain(code, error)
    if plain is None:
        raise error
    return plain


def _line_of(text: str, number: int) -> str:
    lines = _LINE_END.split(text)
    return lines[number - 1][:_CONTEXT] if 0 < number <= len(lines) else ""


def _found(text: str, indent: int, error: str, line: Optional[int], offset: Optional[int]) -> Dict[str, Any]:
    found: Dict[str, Any] = {"valid": False, "error": error[:_CONTEXT]}
    if line is not None and line > 0:
        found["line"], found["context"] = line, _line_of(text, line)
        if offset is not None and offset > 0:
            found["offset"] = offset + indent
    return found


def check(text: str, flags: int, names: Names) -> Dict[str, Any]:
    code = source.dedented(text)
    indent = len(text) - len(text.lstrip(" \t")) if code != text else 0
    try:
        broken = _first_broken(_parse_any(code, flags), names)
    except SyntaxError as error:
        return _found(text, indent, f"{type(error).__name__}: {error.msg}", error.lineno, error.offset)
    except ValueError as error:
        return _found(text, indent, f"SyntaxError: {error}", None, None)
    except (MemoryError, RecursionError):
        return _found(text, indent, "SyntaxError: too deeply nested, or too long", None, None)
    if broken is None:
        return {"valid": True}
    use, rule = broken
    before = _line_of(code, use.line).encode("utf-8", "surrogatepass")[: use.column]
    offset = len(before.decode("utf-8", "replace")) + 1
    return {**_found(text, indent, rule.message, use.line, offset), "rule": rule.text}


_DEDENTING = re.compile(r"\s*(return|raise|pass|break|continue)\b")


def _next_indent(lines: List[str]) -> str:
    last = next((line for line in reversed(lines) if line.strip()), "")
    indent = last[: len(last) - len(last.lstrip())]
    if last.rstrip().endswith(":"):
        return indent + "    "
    return indent[:-4] if _DEDENTING.match(last) else indent


def is_complete(text: str, flags: int) -> Dict[str, Any]:
    """As a prompt would ask: a block is complete when an empty line follows it."""
    code = source.dedented(text)
    lines = code.split("\n")
    if code.startswith("%%"):  # a cell of IPython's is complete with an empty line
        ended = len(lines) > 1 and not lines[-1].strip()
        return {"status": "complete"} if ended else {"status": "incomplete", "indent": ""}
    try:
        with _catch_warnings(module=_warnings):
            _simplefilter("ignore")
            done = _compile_command(code, "<check>", "exec") is not None
    except (SyntaxError, OverflowError, ValueError):
        if _compiles(code, flags):
            done = True
        else:
            return {"status": "invalid"}
    except (MemoryError, RecursionError):
        return {"status": "unknown"}
    open_block = len(lines) > 1 and lines[-1].strip() != "" and lines[-1][:1] in (" ", "\t")
    if done and not open_block and not lines[-1].rstrip().endswith(":"):
        return {"status": "complete"}
    return {"status": "incomplete", "indent": _next_indent(lines)}


def _compiles(code: str, flags: int) -> bool:
    """codeop knows neither await outside a function nor IPython's commands."""
    try:
        _parse_any(code, flags)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True

"""Prose: warns of habits that make text hard to read, and fails if the documents are too long.

`prose.py` checks README.md, CONTRIBUTING.md and docs/*.md, and counts the words of README.md and docs. `prose.py FILE...`
checks these files only: documents, or the comments of C and Python."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = 25_000

# habit | what to write instead
HABITS = [
    (r"(?:^|[.:] )(?:What|Who|Whoever|Whatever) (?![^.]*\?)", "a noun, not a clause, as the subject"),
    (
        r"\b(?:he|it|one|she|that|they|which|who) (?:are|is) told\b|\bis told (?:of|that|what)\b",
        "notify, report, get",
    ),
    (r"\bgo(?:es|ing)? on\b", "continue, resume, stay valid"),
    (r"\b(?:are|is) no more\b", "has ended, does not exist"),
    (r"\bbr(?:ings?|ought) (?:files |it |them )?back\b|\bc[ao]mes? back\b", "restore, return"),
    (r"\b(?:any|some)body\b", "name the client, user, person or program"),
    (r"\b(?:every|no)(?:body|one) who\b|\b(?:he|one|those) who\b", "a noun: owner, holder, reader"),
    (r"(?:^|[,.;] )[Ww]ho (?:has|is|may|offers|wants)\b", "a noun: owner, provider, reader"),
    (r"\b[Ww]hat (?:a \w+ |it |they )?(?:gets?|has|have|is|wants?|was) (?:left|told)?\b", "name the thing"),
    (r"\bthe one (?:that|which|who)\b", "name the thing"),
    (r"\bbut for\b|\bsave for\b", "except"),
    (r"\bis no (?:error|JSON|part)\b", "is not"),
    (r"\bcomes? of (?:it|that|this)\b", "results"),
    (r"\bst(?:ands?|ood) still\b", "stops, is suspended, is parked"),
    (r"\bt(?:ak(?:e|en|es|ing)|ook) (?:all|it|its|that|the|this)(?: \w+){0,2} back\b", "undo, roll back"),
    (r"\bmends? (?:it|that|this)\b|\bto be mended\b", "fix"),
    (r"\b(?:is|lies|stays?) (?:there )?as it (?:is|was)\b", "is unchanged"),
    (r"\bheeds?\b|\bbeholds?\b|\bwhereupon\b|\bthereof\b", "plain words"),
]


def documented(text: str) -> Iterator[tuple[int, str]]:
    """Lines without headings, blocks of code, spans of code and addresses of links."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif not code and not line.startswith(("    ", "#")):
            bare = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`", line))
            yield number, re.sub(r"^[|>\-*\d. ]+", "", bare)


def commented(text: str) -> Iterator[tuple[int, str]]:
    """The comments of C."""
    for match in re.finditer(r"/\*.*?\*/", text, re.DOTALL):
        first = text.count("\n", 0, match.start()) + 1
        for i, line in enumerate(match[0][2:-2].splitlines()):
            yield first + i, line.strip(" \t*")


def noted(text: str) -> Iterator[tuple[int, str]]:
    """The comments and documentation of Python."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.line.lstrip().startswith('"""')
        ):
            for i, line in enumerate(token.string.strip('"').splitlines()):
                yield token.start[0] + i, line.strip("# ")


READERS = {".md": documented, ".c": commented, ".h": commented, ".py": noted}


def warned(path: Path) -> int:
    found = 0
    for number, line in READERS[path.suffix](path.read_text()):
        for habit, instead in HABITS:
            for match in re.finditer(habit, line):
                found += 1
                print(f'{path.relative_to(ROOT)}:{number}: "{match[0].strip(" ,.:;")}": {instead}')
    return found


def words(path: Path) -> int:
    """Bars of tables and dashes are none."""
    return sum(any(map(str.isalnum, word)) for word in path.read_text().split())


def main() -> int:
    named = [Path(it).resolve() for it in sys.argv[1:]]
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = sum(map(warned, named or [*documents, ROOT / "CONTRIBUTING.md"]))
    if named:
        return 0
    count = sum(map(words, documents))
    print(f"{found} habits; {count} words in README.md and docs, of {WORDS}")
    return int(count > WORDS)


if __name__ == "__main__":
    sys.exit(main())

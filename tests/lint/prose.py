"""Prose of the documents: warns of habits that make text hard to read, and fails if the documents are too long.

`prose.py [FILE...]` checks these files; without any, README.md and docs/*.md, whose words it counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = 25_000

# habit | what to write instead
HABITS = [
    (r"(?:^|[.:] )(?:What|Who|Whoever|Whatever) (?!is\b[^.]*\?)", "a noun, not a clause, as the subject"),
    (
        r"\b(?:it|he|she|who|which|that|they|one) (?:is|are) told\b|\bis told (?:of|that|what|in)\b",
        "notify, report, get",
    ),
    (r"\bgo(?:es|ing)? on\b", "continue, resume, stay valid"),
    (r"\b(?:is|are) no more\b", "has ended, does not exist"),
    (r"\bbr(?:ings?|ought) (?:it |them |files )?back\b|\bc[ao]mes? back\b", "restore"),
    (r"\bsomebody\b|\banybody\b", "name the client, user, person or program"),
    (
        r"\b(?:one|those|he|everyone|everybody|somebody|nobody) who (?:has|have|is|are)\b",
        "a noun: owner, holder, reader",
    ),
    (r"(?:^|[,.;] )[Ww]ho (?:has|is|wants|may|offers)\b", "a noun: owner, provider, reader"),
    (r"\bwhat (?:is|was|it|they|a \w+) (?:\w+ )?(?:told|has|have|gets?|wants?)\b", "name the thing"),
    (r"\bthe one (?:that|which|who)\b", "name the thing"),
    (r"\bas long as\b.*\bas long as\b|\bsave for\b|\bbut for\b", "while, except"),
    (r"\bis no (?:[A-Z]\w+|error|part)\b", "is not"),
    (r"\bcomes? of (?:it|this|that)\b", "results"),
    (r"\b(?:stands?|stood) still\b", "is suspended, stops"),
    (r"\btak(?:e|es|en|ing) (?:the|it|its|all|this)(?: \w+){0,3} back\b", "roll back, undo"),
    (r"\bto and fro\b|\bthereof\b|\bwhereupon\b|\bupwards of\b", "plain words"),
    (r"\bmends? (?:it|this|that)\b|\bto be mended\b", "fix, correct"),
    (r"\bhas (?:it|them|this) (?:sent|made|read|shown)\b", "an active verb"),
]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside of code: numbered, without spans of code and the addresses of links."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif not code and not line.startswith("    "):
            yield number, re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`", line))


def habits(path: Path) -> int:
    found = 0
    for number, line in prose(path.read_text()):
        bare = re.sub(r"^[#|\-*\d. ]+", "", line)
        for pattern, instead in HABITS:
            for match in re.finditer(pattern, bare):
                found += 1
                print(f"{path.relative_to(ROOT)}:{number}: warning: \"{match[0].strip(' .,:;')}\": {instead}")
    return found


def words(paths: list[Path]) -> int:
    """As wc counts them."""
    return sum(len(path.read_text().split()) for path in paths)


def main() -> int:
    named = [Path(it).resolve() for it in sys.argv[1:]]
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = sum(map(habits, named or [*documents, ROOT / "CONTRIBUTING.md"]))
    if named:
        return 0
    count = words(documents)
    print(f"{count} words in README.md and docs, of {WORDS} at most; {found} warnings")
    return int(count > WORDS)


if __name__ == "__main__":
    sys.exit(main())

"""The tests that libraries have of their own, in a session and beside it: each must go the same way on both sides.

A difference has to be known: it stands in known/NAME.txt, below the reason for it. One that is not known fails the
run, and so does one that is known and is none any more.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from places import MADE, place_of
from sides import Beside, Inside, Outcomes
from table import SUITES, Suite

KNOWN = Path(__file__).parent / "known"
ABSENT = ("absent", "")


@dataclass(frozen=True)
class Difference:
    beside: str
    inside: str
    test: str  # an id; with * at its end: all that begin so

    def covers(self, other: Difference) -> bool:
        same = (self.beside, self.inside) == (other.beside, other.inside)
        if self.test.endswith("*"):
            return same and other.test.startswith(self.test[:-1])
        return same and other.test == self.test

    def __str__(self) -> str:
        return f"{self.beside} -> {self.inside} {self.test}"


def read_known(path: Path) -> list[Difference]:
    """Paragraphs: a reason in lines that begin with #, and the differences that it explains."""
    found, reason = [], False
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split(maxsplit=3)
        if not words:
            reason = False
        elif line.startswith("#"):
            reason = True
        elif len(words) < 4 or words[1] != "->" or not reason:
            raise ValueError(f"{path}: no reason, or not BESIDE -> INSIDE ID: {line}")
        else:
            found.append(Difference(words[0], words[2], words[3]))
    return found


def differences(beside: Outcomes, inside: Outcomes) -> list[Difference]:
    pairs = ((beside.get(name, ABSENT)[0], inside.get(name, ABSENT)[0], name) for name in {**beside, **inside})
    return [Difference(*pair) for pair in pairs if pair[0] != pair[1]]


def run_both(suite: Suite, only: list[str], undo: bool = False) -> tuple[Outcomes, Outcomes]:
    place = place_of(suite)
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(side(suite, place, undo).run, only) for side in (Beside, Inside)]
        return sides[0].result(), sides[1].result()


@dataclass
class Verdict:
    """What came of a suite."""

    beside: Outcomes
    inside: Outcomes
    known: list[Difference]  # that there are
    unknown: list[Difference]
    gone: list[Difference]  # known, and none any more
    once: list[Difference]  # that were none when they were tried again

    @property
    def ok(self) -> bool:
        return not self.unknown and not self.gone


def judge(suite: Suite, known_file: Path, undo: bool = False) -> Verdict:
    listed = read_known(known_file)
    beside, inside = run_both(suite, [], undo)
    found = differences(beside, inside)
    unknown = [it for it in found if not any(one.covers(it) for one in listed)]
    still = unknown
    if unknown:  # others use this machine, and some tests go now this way and now that
        again = run_both(suite, [it.test for it in unknown], undo)
        tests = {it.test for it in differences(*again)}
        still = [it for it in unknown if it.test in tests]
    return Verdict(
        beside,
        inside,
        [it for it in found if it not in unknown],
        still,
        [one for one in listed if not any(one.covers(it) for it in found)],
        [it for it in unknown if it not in still],
    )


def write(suite: Suite, verdict: Verdict) -> None:
    """All that came of it, to look at."""
    for side, outcomes in (("beside", verdict.beside), ("inside", verdict.inside)):
        lines = (f"{outcome} {name} {text!r}" for name, (outcome, text) in sorted(outcomes.items()))
        (MADE / f"{suite.name}.{side}").write_text("\n".join(lines) + "\n")


def tell(suite: Suite, verdict: Verdict, seconds: float) -> None:
    counts = Counter(outcome for outcome, _ in verdict.beside.values())
    print(
        f"{suite.name}: {len(verdict.beside)} tests beside ({', '.join(f'{n} {it}' for it, n in counts.most_common())}), "
        f"{len(verdict.inside)} in a session; {len(verdict.known)} differ as known, {len(verdict.unknown)} otherwise; "
        f"{len(verdict.gone)} known ones are gone; {seconds:.0f} s",
        flush=True,
    )
    for it in verdict.unknown:
        print(f"  not known: {it}")
        for side, outcomes in (("beside", verdict.beside), ("inside", verdict.inside)):
            text = outcomes.get(it.test, ABSENT)[1]
            if text:
                print(f"    {side}: {text!r}")
    for it in verdict.gone:
        print(f"  is gone: {it}")
    for it in verdict.once:
        print(f"  differed once: {it}")


def main(names: list[str], known: Path = KNOWN, undo: bool = False) -> int:
    ok = True
    for name in names:
        began = time.monotonic()
        verdict = judge(SUITES[name], known / f"{name}.txt", undo)
        write(SUITES[name], verdict)
        tell(SUITES[name], verdict, time.monotonic() - began)
        ok = ok and verdict.ok
    return 0 if ok else 1


if __name__ == "__main__":
    # In the background of a shell it is ignored, and would be in the tests beside, which are not all made for that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        prog="./dev suites",
        description=__doc__,
        epilog="\n".join(f"{it.name:16}{it.what}" for it in SUITES.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="one of those below; none: all of them")
    parser.add_argument("--undo", action="store_true", help="what comes of them the second time, after an undo")
    asked = parser.parse_args()
    names = asked.name
    for name in names:
        if name not in SUITES:
            parser.error(f"no suite {name}")
    sys.exit(main(names or list(SUITES), undo=asked.undo))

"""The runner of other people's tests, with a few of our own in their place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import run
from run import Difference, judge
from sides import Outcomes
from table import SUITES

SAMPLE = SUITES["sample"]


def test_both_sides_are_run_to_their_end() -> None:
    """Also when a test ends the process that it runs in."""
    suite = dataclasses.replace(SAMPLE, env={"SAMPLE_DIES": "1"})
    verdict = judge(suite, run.KNOWN / "sample.txt")
    assert verdict.ok, verdict
    assert [str(it) for it in verdict.known] == ["passed -> failed cases.py::test_socket_is_refused"]
    assert {name.partition("::")[2]: outcome for name, (outcome, _) in verdict.beside.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_expected_to_fail": "xfailed",
        "test_parametrized[a b]": "passed",
        "test_parametrized[c[d]]": "passed",
        "test_error": "error",
        "test_socket_is_refused": "passed",
        "test_dies": "died",
        "test_only_once": "passed",
        "test_after_that": "passed",
    }
    assert "local-sockets-not-granted" in verdict.inside["cases.py::test_socket_is_refused"][1]


def test_the_second_time_is_after_an_undo() -> None:
    """Both sides still have what the first one left in memory."""
    suite = dataclasses.replace(SAMPLE, env={"SAMPLE_ONCE": "1"})
    verdict = judge(suite, run.KNOWN / "sample.txt", undo=True)
    assert verdict.ok, verdict
    once = "cases.py::test_only_once"
    assert (verdict.beside[once][0], verdict.inside[once][0]) == ("failed", "failed")
    assert verdict.inside["cases.py::test_passes"][0] == "passed"


def told(monkeypatch: pytest.MonkeyPatch, known: Path, *runs: tuple[Outcomes, Outcomes]) -> run.Verdict:
    """What is made of these outcomes of one run after the other."""
    left = list(runs)
    monkeypatch.setattr(run, "run_both", lambda suite, only, undo: left.pop(0))
    verdict = judge(SAMPLE, known)
    assert not left
    return verdict


def test_what_is_not_known_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    beside = {"a": ("passed", ""), "b": ("passed", ""), "c": ("passed", "")}
    inside = {"a": ("passed", ""), "b": ("failed", "why")}
    verdict = told(monkeypatch, tmp_path / "none", (beside, inside), (beside, inside))
    assert verdict.unknown == [Difference("passed", "failed", "b"), Difference("passed", "absent", "c")]
    assert not verdict.ok


def test_what_differs_once_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, other = {"a": ("passed", "")}, {"a": ("failed", "")}
    verdict = told(monkeypatch, tmp_path / "none", (one, other), (one, one))
    assert verdict.ok and verdict.once == [Difference("passed", "failed", "a")]


def test_what_is_known_has_to_be_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("# why\npassed -> failed b[*\n\n# why not\npassed -> failed a\nfailed -> passed b*\n")
    beside = {"a": ("passed", ""), "b[1]": ("passed", ""), "b[2]": ("passed", "")}
    inside = {"a": ("passed", ""), "b[1]": ("failed", ""), "b[2]": ("failed", "")}
    verdict = told(monkeypatch, known, (beside, inside))
    assert verdict.known == [Difference("passed", "failed", "b[1]"), Difference("passed", "failed", "b[2]")]
    assert verdict.gone == [Difference("passed", "failed", "a"), Difference("failed", "passed", "b*")]
    assert not verdict.unknown and not verdict.ok


@pytest.mark.parametrize("text", ["passed -> failed a", "# why\n\npassed -> failed a", "# why\npassed failed a"])
def test_a_known_difference_has_a_reason(tmp_path: Path, text: str) -> None:
    known = tmp_path / "known.txt"
    known.write_text(text + "\n")
    with pytest.raises(ValueError, match="no reason"):
        run.read_known(known)


@pytest.mark.parametrize("path", sorted(run.KNOWN.glob("*.txt")), ids=lambda path: path.stem)
def test_the_lists_can_be_read(path: Path) -> None:
    assert path.stem in SUITES and run.read_known(path)

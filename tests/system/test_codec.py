"""The Python codec against the vectors; tests/unit/proto_vectors.c holds the one in C to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import internal
from lair import codec, messages

VECTORS = Path(__file__).parents[2] / "proto" / "vectors"

# The names of proto/message.h.
CLASSES: dict[str, type[codec.Message]] = {
    "hello_request": messages.Hello,
    "open_request": messages.Open,
    "exec_request": messages.Exec,
    "attach_request": messages.Attach,
    "results_request": messages.Results,
    "input_request": messages.Input,
    "interrupt_request": messages.Interrupt,
    "reset_request": messages.Reset,
    "shutdown_request": messages.Shutdown,
    "info_request": messages.Info,
    "checkpoint_request": messages.Checkpoint,
    "checkpoints_request": messages.Checkpoints,
    "restore_request": messages.Restore,
    "drop_request": messages.Drop,
    "undo_request": messages.Undo,
    "branch_request": messages.Branch,
    "files_request": messages.Files,
    "get_request": messages.Get,
    "put_request": messages.Put,
    "copy_in_request": messages.CopyIn,
    "complete_request": messages.Complete,
    "inspect_request": messages.Inspect,
    "vars_request": messages.Vars,
    "history_request": messages.History,
    "stray_request": messages.Stray,
    "stray_reply": messages.StrayReply,
    "check_request": messages.Check,
    "is_complete_request": messages.IsComplete,
    "save_request": messages.Save,
    "load_request": messages.Load,
    "saves_request": messages.Saves,
    "unsave_request": messages.Unsave,
    "stop_request": messages.Stop,
    "save_record": messages.SaveRecord,
    "saves_reply": messages.SavesReply,
    "stop_reply": messages.StopReply,
    "list_request": messages.ListSessions,
    "stats_request": messages.Stats,
    "error_reply": messages.ErrorReply,
    "hello_reply": messages.HelloReply,
    "exec_reply": messages.ExecReply,
    "detached_reply": messages.DetachedReply,
    "result_record": messages.ResultRecord,
    "results_reply": messages.ResultsReply,
    "empty_reply": messages.Reply,
    "reset_reply": messages.ResetReply,
    "interrupt_reply": messages.InterruptReply,
    "session_info": messages.SessionInfo,
    "state_reply": messages.StateReply,
    "save_reply": messages.SaveReply,
    "load_reply": messages.LoadReply,
    "refused_name": messages.RefusedName,
    "task_message": internal.Task,
    "task_report": internal.Report,
    "saved_state": internal.Saved,
    "checkpoint_record": messages.CheckpointRecord,
    "checkpoints_reply": messages.CheckpointsReply,
    "transfer_reply": messages.TransferReply,
    "get_reply": messages.GetReply,
    "file_record": messages.FileRecord,
    "files_reply": messages.FilesReply,
    "list_reply": messages.ListReply,
    "stats_reply": messages.StatsReply,
    "complete_reply": messages.CompleteReply,
    "completion_match": messages.Match,
    "inspect_reply": messages.InspectReply,
    "vars_reply": messages.VarsReply,
    "variable_record": messages.Variable,
    "is_complete_reply": messages.IsCompleteReply,
    "check_reply": messages.CheckReply,
    "history_reply": messages.HistoryReply,
    "history_record": messages.HistoryRecord,
    "stdout_event": messages.StdoutEvent,
    "stderr_event": messages.StderrEvent,
    "ask_event": messages.AskEvent,
    "display_event": messages.DisplayEvent,
    "alive_event": messages.AliveEvent,
    "shown": messages.Shown,
    "artifact": messages.Artifact,
    "effect": messages.Effect,
    "error_frame": messages.ErrorFrame,
    "ended_record": messages.Ended,
    "cell_error": messages.CellError,
    "blocked_act": messages.Blocked,
    "place_record": internal.Place,
    "configure_message": internal.Configure,
    "warden_message": internal.MakeWarden,
    "template_ready": internal.TemplateReady,
    "failed_message": internal.Failed,
    "made_message": internal.Made,
    "spawn_message": internal.Spawn,
    "adopt_message": internal.Adopt,
    "sweep_message": internal.Sweep,
    "swept_message": internal.Swept,
    "freeze_message": internal.Freeze,
    "frozen_message": internal.Frozen,
    "measure_message": internal.Measure,
    "measured_message": internal.Measured,
    "signal_message": internal.Signal,
    "discard_message": internal.Discard,
    "warden_ready": internal.WardenReady,
    "spawned_message": internal.Spawned,
    "signalled_message": internal.Signalled,
    "exited_message": internal.Exited,
    "survey_message": internal.Survey,
    "surveyed_message": internal.Surveyed,
    "run_message": internal.Run,
    "question_message": internal.Question,
    "told_message": internal.Told,
    "answer_message": internal.Answer,
    "done_message": internal.Done,
    "ask_message": internal.Ask,
    "display_message": internal.Display,
}


def load(name: str) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((VECTORS / name).read_text())
    return vectors


def message_of(vector: dict[str, Any]) -> codec.Message:
    """JSON has neither bytes nor numbers of 64 bits: the one is written as hex, the other as text."""
    cls = CLASSES[vector["message"]]
    kinds = {name: field.kind for name, field in codec._table(cls).items()}
    values = dict(vector["fields"])
    for name, value in values.items():
        if kinds[name] == "bin":
            values[name] = bytes.fromhex(value)
        elif kinds[name] in ("uint", "int"):
            values[name] = int(value)
    return cls(**values)


@pytest.mark.parametrize("vector", load("messages.json"), ids=lambda v: f"{v['message']}-{v['case']}")
def test_vector(vector: dict[str, Any]) -> None:
    message = message_of(vector)
    frame = codec.encode(message)
    assert frame.hex() == vector["frame"]
    assert codec.decode(type(message), frame) == message


@pytest.mark.parametrize("vector", load("refused.json"), ids=lambda v: v["why"])
def test_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(CLASSES[vector["message"]], bytes.fromhex(vector["frame"]))


def test_what_a_later_build_says_is_passed_over() -> None:
    content = {"id": 1, "interrupted": True, "later": [1, {"a": 2}]}
    assert codec.read(messages.InterruptReply, content) == messages.InterruptReply(id=1, interrupted=True)
    with pytest.raises(codec.CodecError, match="interrupted"):
        codec.read(messages.InterruptReply, {"id": 1, "later": True})


def test_every_message_has_a_vector() -> None:
    assert {vector["message"] for vector in load("messages.json")} == set(CLASSES)


def test_an_answer_with_many_records() -> None:
    """As many as there are sessions, or results."""
    sessions = [{"session": f"s{i}", "profile": "default", "state": "idle"} for i in range(20000)]
    frame = codec.encode(messages.ListReply(id=1, sessions=sessions))
    assert codec.decode(messages.ListReply, frame).sessions == sessions

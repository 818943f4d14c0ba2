"""ipywidgets in a session, with jupyter_client as the frontend: a slider is moved, and its function runs."""

from typing import Any

from jupyter_client.manager import start_new_kernel

Message = dict[str, Any]

CODE = """
import ipywidgets as widgets
seen = []
def show(n):
    seen.append(n)
    print('n is', n)
box = widgets.interact(show, n=widgets.IntSlider(value=3, min=0, max=10))
"""


def run(client: Any, code: str) -> tuple[Message, list[Message]]:
    heard: list[Message] = []
    reply = client.execute_interactive(code, timeout=30, output_hook=heard.append)
    assert reply["content"]["status"] == "ok", reply["content"]
    return reply, heard


def until_idle(client: Any, name: str) -> list[Message]:
    heard = []
    while True:
        message = client.get_iopub_msg(timeout=20)
        if message["parent_header"].get("msg_id") != name:
            continue
        heard.append(message)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return heard


def send(client: Any, kind: str, content: Message) -> list[Message]:
    message = client.session.msg(kind, content)
    client.shell_channel.send(message)
    return until_idle(client, message["header"]["msg_id"])


def main() -> None:
    manager, client = start_new_kernel(kernel_name="lair")
    _, heard = run(client, CODE)
    opened = [it["content"] for it in heard if it["msg_type"] == "comm_open"]
    models = {it["comm_id"]: it["data"]["state"]["_model_name"] for it in opened}
    assert sorted(models.values()).count("IntSliderModel") == 1, models
    (slider,) = [name for name, model in models.items() if model == "IntSliderModel"]
    (output,) = [name for name, model in models.items() if model == "OutputModel"]
    shown = [it for it in heard if it["msg_type"] == "display_data"]
    assert any("application/vnd.jupyter.widget-view+json" in it["content"]["data"] for it in shown), shown
    assert [it["content"]["text"] for it in heard if it["msg_type"] == "stream"] == ["n is 3\n"]

    # as the frontend does when somebody moves it
    data = {"method": "update", "state": {"value": 7}, "buffer_paths": []}
    heard = send(client, "comm_msg", {"comm_id": slider, "data": data})
    name = heard[0]["parent_header"]["msg_id"]
    own = [it["content"] for it in heard if it["msg_type"] == "comm_msg"]
    captured = [
        it["data"]["state"]["msg_id"]
        for it in own
        if it["comm_id"] == output and "msg_id" in it["data"].get("state", {})
    ]
    assert captured[0] == name and captured[-1] == "", captured
    kinds = [it["msg_type"] for it in heard]
    assert "clear_output" in kinds, kinds
    assert [it["content"]["text"] for it in heard if it["msg_type"] == "stream"] == ["n is 7\n"]
    _, heard = run(client, "seen, box.widget.children[0].value")
    assert [it["content"]["data"]["text/plain"] for it in heard if it["msg_type"] == "execute_result"] == [
        "([3, 7], 7)"
    ]

    message = client.session.msg("comm_info_request", {"target_name": "jupyter.widget"})
    client.shell_channel.send(message)
    reply = client.get_shell_msg(timeout=20)
    assert slider in reply["content"]["comms"], reply["content"]

    # What the widget has done is undone with the cell after it.
    run(client, "late = 1")
    send(client, "comm_msg", {"comm_id": slider, "data": {**data, "state": {"value": 9}}})
    run(client, "%undo")
    _, heard = run(client, "seen, 'late' in dir()")
    assert [it["content"]["data"]["text/plain"] for it in heard if it["msg_type"] == "execute_result"] == [
        "([3, 7], False)"
    ]

    # A message with bytes, both ways, and a comm that the frontend opens and closes.
    code = "import comm\ndef target(it, message):\n    it.on_msg(lambda m: it.send(m['content']['data'], buffers=[bytes(m['buffers'][0])[::-1], b'']))\n    it.on_close(lambda m: print('closed'))\ncomm.get_comm_manager().register_target('mirror', target)"
    run(client, code)
    send(client, "comm_open", {"comm_id": "c1", "target_name": "mirror", "data": {}})
    message = client.session.send(
        client.shell_channel.socket, "comm_msg", {"comm_id": "c1", "data": {"a": 1}}, buffers=[b"abc"]
    )
    heard = until_idle(client, message["header"]["msg_id"])
    (answer,) = [it for it in heard if it["msg_type"] == "comm_msg"]
    assert answer["content"] == {"comm_id": "c1", "data": {"a": 1}}
    assert [bytes(buffer) for buffer in answer["buffers"]] == [b"cba", b""]
    heard = send(client, "comm_close", {"comm_id": "c1", "data": {}})
    assert "closed\n" in [it["content"].get("text") for it in heard]
    client.stop_channels()
    manager.shutdown_kernel()


if __name__ == "__main__":
    main()

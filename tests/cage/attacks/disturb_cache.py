# goal 4: take out of memory what everybody uses. test_what_is_in_memory_stays looks whether it is gone
def attack():
    fd = os.open(os.path.join(os.path.dirname(os.__file__), "this.py"), os.O_RDONLY)
    size = len(os.pread(fd, 1 << 16, 0))
    for go in (
        lambda: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED),
        lambda: call("fadvise64", fd, 0, 0, os.POSIX_FADV_DONTNEED | 1 << 40),
        lambda: libc.madvise(ctypes.c_long(libc.mmap(None, size, 1, 2, fd, 0)), size, 21),
    ):
        no_error(go)

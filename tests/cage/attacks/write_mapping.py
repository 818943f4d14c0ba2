# goal 1: a private or read-only mapping made shared and writable
def attack():
    import mmap

    fd = os.open(RO + "/file", os.O_RDONLY)
    return first(
        lambda: mmap.mmap(fd, 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        lambda: protect(fd),
    )


def protect(fd):
    address = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))
    return call("mprotect", ctypes.c_long(address), 4096, 3)

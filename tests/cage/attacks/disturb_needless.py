# goal 4: calls, and ways to call, that nothing in a session has use for
def attack():
    reading, writing = os.pipe()
    os.write(writing, b"x")
    other = os.pipe()[1]
    file = os.open("/usr/bin/env", os.O_RDONLY)
    page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
    vector = struct.pack("QQ", page, 1)
    own = os.memfd_create("own")
    gone = [errno.ENOSYS]
    flags = {
        1: "HIPRI",
        2: "DSYNC",
        4: "SYNC",
        8: "NOWAIT",
        16: "APPEND",
        32: "NOAPPEND",
        64: "ATOMIC",
        128: "DONTCACHE",
    }
    return unless_refused(
        ("splice", gone, lambda: call("splice", file, None, writing, None, 1, 0)),
        ("tee", gone, lambda: call("tee", reading, other, 1, 0)),
        ("readahead", gone, lambda: call("readahead", file, 0, 1 << 20)),
        ("sync_file_range", gone, lambda: call("sync_file_range", own, 0, 0, 7)),
        ("mlockall", gone, lambda: call("mlockall", 2)),
        ("mincore", gone, lambda: call("mincore", page, 4096, bytes(1))),
        *(
            (f"{name} {flag}", [errno.EOPNOTSUPP], lambda name=name, n=n: call(name, own, vector, 1, 0, 0, n))
            for n, flag in flags.items()
            for name in ("preadv2", "pwritev2")
        ),
        ("preadv2 1 << 32 | 8", [errno.EOPNOTSUPP], lambda: call("preadv2", own, vector, 1, 0, 0, 1 << 32 | 8)),
        ("a barrier for everybody", [errno.EINVAL], lambda: call("membarrier", 1, 0, 0)),
        ("one of the hasty kind", [errno.EINVAL], lambda: call("membarrier", 2, 0, 0)),
        ("to be part of that", [errno.EINVAL], lambda: call("membarrier", 4, 0, 0)),
        ("all of them", [errno.EINVAL], lambda: call("membarrier", 1 << 32 | 1, 0, 0)),
    )

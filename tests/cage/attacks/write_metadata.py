# goal 1: modes, owners, times and attributes of what may only be read
def attack():
    before = os.stat(RO + "/file")
    fd = os.open(RO + "/file", os.O_RDONLY)
    for go in (
        lambda: os.chmod(RO + "/file", 0o777),
        lambda: os.fchmod(fd, 0o777),
        lambda: os.utime(RO + "/file", (1, 1)),
        lambda: os.utime(fd, (1, 1)),
        lambda: os.chown(RO + "/file", os.getuid(), os.getgid()),
        lambda: os.setxattr(RO + "/file", "user.x", b"1"),
        lambda: call("fchmodat2", -100, (RO + "/file").encode(), 0o777, 0),
        lambda: call("setxattrat", -100, (RO + "/file").encode(), 0, b"user.x", struct.pack("QII", 0, 0, 0), 16),
        lambda: call("file_setattr", -100, (RO + "/file").encode(), struct.pack("QIIII", 0x80, 0, 0, 0, 0), 24, 0),
    ):
        first(go)
    after = os.stat(RO + "/file")
    same = (before.st_mode, before.st_mtime_ns) == (after.st_mode, after.st_mtime_ns)
    return None if same and not no_error(lambda: os.getxattr(RO + "/file", "user.x")) else after

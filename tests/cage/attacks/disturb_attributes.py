# goal 4: keep things in the attributes of files, which some file systems count as nobody's
def attack():
    open("file", "w").close()
    fd = os.open("file", os.O_RDWR)
    value = ctypes.create_string_buffer(b"1")
    arguments = struct.pack("QII", ctypes.addressof(value), 1, 0)
    return first(
        lambda: os.setxattr("file", "user.x", b"1"),
        lambda: os.setxattr("file", "user.x", b"1", follow_symlinks=False),
        lambda: os.setxattr(fd, "user.x", b"1"),
        lambda: os.setxattr("file", "system.posix_acl_access", bytes(4)),
        lambda: call("setxattrat", -100, b"file", 0, b"user.x", arguments, len(arguments)),
    )

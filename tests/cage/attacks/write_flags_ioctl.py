# goal 1: inode flags and versions by ioctl on a descriptor that is only to be read
def attack():
    import fcntl

    fd = os.open(RO + "/file", os.O_RDONLY)
    return first(
        lambda: fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x80)),
        lambda: fcntl.ioctl(fd, 0x40087602, struct.pack("l", 7)),
        lambda: fcntl.ioctl(fd, 0x401C5820, bytes(28)),
    )

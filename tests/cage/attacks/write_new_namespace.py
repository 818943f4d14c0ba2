# goal 1: a namespace of one's own, with all its powers
def attack():
    return first(
        lambda: call("unshare", 0x10000000),
        lambda: call("unshare", 0x00020000),
        lambda: call("clone", 0x10000000 | 17, 0, 0, 0, 0),
        lambda: call("clone", 0x10020000 | 17, 0, 0, 0, 0),
        lambda: call("clone3", struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88),
        lambda: call("setns", os.open("/proc/self/ns/user", os.O_RDONLY), 0),
    )

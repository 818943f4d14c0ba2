# goal 1: the newer ways to mount, to look at mounts, and to change what is mounted
def attack():
    return first(
        lambda: number(428, -100, RW.encode(), 1),  # open_tree
        lambda: number(429, -100, RW.encode(), -100, RO.encode(), 0),  # move_mount
        lambda: number(430, b"tmpfs", 0),  # fsopen
        lambda: number(433, -100, b"/", 0),  # fspick
        lambda: number(442, -100, RO.encode(), 0, struct.pack("QQQQ", 0, 1, 0, 0), 32),  # mount_setattr
        lambda: number(457, bytes(24), bytes(512), 512, 0),  # statmount
        lambda: number(458, bytes(24), bytes(512), 64, 0),  # listmount
        lambda: number(467, -100, RW.encode(), 1, bytes(32), 32),  # open_tree_attr
        lambda: call("chroot", b"."),
        lambda: call("quotactl_fd", os.open(".", os.O_RDONLY), 0x800002, 0, bytes(128)),
        lambda: call("swapon", RW.encode(), 0),
    )

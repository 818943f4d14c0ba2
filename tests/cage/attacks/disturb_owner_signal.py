# goal 4: have the kernel signal somebody for us
def attack():
    import fcntl

    ours, theirs = socket.socketpair()
    return first(
        lambda: fcntl.fcntl(ours, fcntl.F_SETOWN, PID),
        lambda: fcntl.fcntl(ours, 15, struct.pack("ii", 1, PID)),
        lambda: fcntl.fcntl(ours, fcntl.F_SETSIG, 10),
        lambda: fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC),
        lambda: fcntl.ioctl(ours, 0x8901, struct.pack("i", PID)),
        lambda: call("mq_open", b"x", 0o102, 0o600, None),
        lambda: call("prctl", 36, 1, 0, 0, 0),
    )

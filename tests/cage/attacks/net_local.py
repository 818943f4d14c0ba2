# goal 5: the daemon's sockets, by path and by abstract name
def attack():
    def reach(address):
        with socket.socket(socket.AF_UNIX) as it:
            it.connect(address)
            return address

    return first(
        lambda: reach(OUT + "/stream"),
        lambda: reach(f"/proc/{PID}/root{OUT}/stream"),
        lambda: reach("\0" + ABSTRACT),
        lambda: raw_socket(socket.AF_UNIX, socket.SOCK_DGRAM, 0),
        lambda: raw_socket(16, 3, 0),
    )

# goal 3: a connection that turns into one of a kind which no rule is about
def attack():
    def turn(level, name):
        ours, theirs = socket.socketpair()
        try:
            call("setsockopt", ours.fileno(), level, name, b"smc", 3)
        except OSError as error:
            # Of a pair of streams it would be EOPNOTSUPP or the like: here it is not even asked.
            if error.errno == errno.ENOPROTOOPT:
                fail()
            return error.errno

    return first(lambda: turn(6, 31), lambda: turn(6 | 1 << 40, 31 | 1 << 40))

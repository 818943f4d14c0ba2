# goal 4: fill the host's log, which tells of each process that a filter kills
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

# goal 1: calls newer than anybody has thought of
def attack():
    known = {
        434,
        436,
        439,
        441,
        444,
        445,
        446,
        449,
        451,
    }  # pidfd_open close_range faccessat2 epoll_pwait2 landlock futex
    found = []
    for n in range(424, 700):
        if n in known:
            continue
        try:
            number(n, 0, 0, 0, 0, 0, 0)
            found.append(n)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                found.append((n, error.errno))
    odd = (0x3FFFFFFF, 0x40000000 + 2, 0x40000000 + 59, 0x80000000, 0xFFFFFFFE)
    return found or first(*(lambda n=n: child(lambda: number(n, b"/etc/hosts", 2, 0)) for n in odd))

# goal 4: type into a terminal, or take one, by whatever descriptor
# holds: ungranted
def attack():
    import fcntl

    requests = (0x5412, 0x541C, 0x540E, 0x5423, 0x5414, 0x5422)  # TIOCSTI LINUX SCTTY SETD SWINSZ NOTTY
    found = []
    for fd in range(64):
        for request in requests:
            try:
                fcntl.ioctl(fd, request, bytes(64))
                found.append((fd, request))
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EBADF):
                    found.append((fd, request, error.errno))
    return found or first(
        lambda: os.open("/dev/tty", os.O_RDWR),
        lambda: os.open("/dev/ptmx", os.O_RDWR),
        lambda: os.open("/dev/pts/0", os.O_RDWR),
        lambda: os.open("/dev/console", os.O_RDWR),
    )

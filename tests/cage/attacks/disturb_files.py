# goal 4: fill the disk with one file, or hold every descriptor
def attack():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def large():
        with open("large", "wb") as file:
            file.truncate((64 << 20) + 1)
        return True

    return first(large, lambda: [os.open(".", os.O_RDONLY) for _ in range(5000)])

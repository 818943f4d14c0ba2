# goal 4: more memory than granted, in many processes and in mappings that no limit of a process counts
# holds: groups
def attack():
    import mmap

    def hold(come, megabytes):
        shared = mmap.mmap(-1, megabytes << 20)
        for at in range(0, len(shared), 4096):
            shared[at] = 1
        os.write(come, b"1")
        time.sleep(60)

    children = []
    for _ in range(12):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                hold(writing, 60)
            finally:
                os._exit(0)
        os.close(writing)
        children.append((pid, reading))
    for _, reading in children:
        os.read(reading, 1)
        os.close(reading)
    alive = [pid for pid, _ in children if os.waitpid(pid, os.WNOHANG) == (0, 0)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return f"{len(alive) * 60} MiB" if len(alive) * 60 > 560 else None

# goal 2: memory and descriptors of the session's own warden
def attack():
    warden = os.getppid()
    return first(
        lambda: open(f"/proc/{warden}/environ", "rb").read(1),
        lambda: open(f"/proc/{warden}/mem", "rb").read(1),
        lambda: open(f"/proc/{warden}/maps", "rb").read(1),
        lambda: os.listdir(f"/proc/{warden}/fd"),
        lambda: os.readlink(f"/proc/{warden}/root"),
        lambda: call("ptrace", 16, warden, 0, 0),
        lambda: call("pidfd_getfd", os.pidfd_open(warden), 4, 0),
    )

# goal 2: memory, environment and files of processes outside
def attack():
    return first(
        *(
            lambda name=name: open(f"/proc/{PID}/{name}", "rb").read(16)
            for name in ("environ", "cmdline", "maps", "mem")
        ),
        lambda: os.listdir(f"/proc/{PID}/fd"),
        lambda: os.listdir(f"/proc/{PID}/root/"),
        lambda: call("process_vm_readv", PID, bytes(16), 1, bytes(16), 1, 0),
        lambda: call("ptrace", 16, PID, 0, 0),
        lambda: call("kcmp", os.getpid(), PID, 0, 0, 0),
        lambda: call("pidfd_getfd", os.pidfd_open(PID), 0, 0),
    )

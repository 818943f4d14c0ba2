# goal 2: memory, descriptors and files of whatever other process can be named
def attack():
    def look(pid):
        local = struct.pack("QQ", ctypes.addressof(ctypes.create_string_buffer(8)), 8)
        return first(
            lambda: open(f"/proc/{pid}/mem", "rb").read(1),
            lambda: open(f"/proc/{pid}/maps").read(1) or fail(),
            lambda: os.listdir(f"/proc/{pid}/fd"),
            lambda: os.listdir(f"/proc/{pid}/map_files"),
            lambda: os.listdir(f"/proc/{pid}/root/"),
            lambda: os.listdir(f"/proc/{pid}/cwd/"),
            lambda: os.readlink(f"/proc/{pid}/ns/mnt"),
            lambda: call("ptrace", 16, pid, 0, 0),
            lambda: call("ptrace", 0x4206, pid, 0, 0),
            lambda: call("process_vm_readv", pid, local, 1, local, 1, 0),
            lambda: call("process_vm_writev", pid, local, 1, local, 1, 0),
            lambda: call("process_madvise", os.pidfd_open(pid), local, 1, 8, 0),
            lambda: call("pidfd_getfd", os.pidfd_open(pid), 0, 0),
            lambda: call("pidfd_getfd", os.pidfd_open(pid), 3, 0),
            lambda: call("kcmp", os.getpid(), pid, 0, 0, 0),
            lambda: call("get_robust_list", pid, bytes(8), bytes(8)),
            lambda: call("move_pages", pid, 0, None, None, None, 0),
        )

    child_of_mine = os.fork()
    if child_of_mine == 0:
        time.sleep(20)
        os._exit(0)
    try:
        for pid in (os.getppid(), PID, child_of_mine, *range(1, 40)):
            if pid != os.getpid() and look(pid):
                return pid, look(pid)
    finally:
        os.kill(child_of_mine, signal.SIGKILL)
        os.waitpid(child_of_mine, 0)

# goal 4: signal, trace and slow down processes outside
def attack():
    return first(
        lambda: os.kill(PID, 0),
        lambda: os.kill(PID, signal.SIGUSR2),
        lambda: os.kill(-1, 0),
        lambda: call("kill", 0xFFFFFFFF, 0),
        lambda: call("kill", -1, 0),
        lambda: call("tgkill", PID, PID, 0),
        lambda: call("rt_sigqueueinfo", PID, 0, bytes(128)),
        lambda: call("pidfd_send_signal", os.pidfd_open(PID), 0, None, 0),
        lambda: os.setpriority(os.PRIO_PROCESS, PID, 19),
        lambda: os.setpriority(os.PRIO_USER, 0, 19),
        lambda: os.sched_setaffinity(PID, {0}),
        lambda: call("prlimit64", PID, 7, struct.pack("QQ", 3, 3), None),
        lambda: call("ioprio_set", 1, PID, 0),
        lambda: call("migrate_pages", PID, 1, bytes(8), bytes(8)),
    )

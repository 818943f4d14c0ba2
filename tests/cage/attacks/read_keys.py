# goal 2: the kernel's keys, log and addresses
def attack():
    return first(
        lambda: call("keyctl", 0, -4, 0),
        lambda: call("request_key", b"user", b"x", None, -3),
        lambda: call("add_key", b"user", b"x", b"y", 1, -3),
        lambda: call("syslog", 3, bytes(64), 64),
        lambda: open("/proc/keys").read(9) or fail(),
        lambda: open("/proc/kallsyms").read(9) or fail(),
        lambda: open("/proc/kmsg").read(9) or fail(),
        lambda: open("/proc/timer_list").read(9) or fail(),
        lambda: open("/proc/kcore", "rb").read(9) or fail(),
        lambda: call("bpf", 0, bytes(64), 64),
        lambda: call("perf_event_open", bytes(112), 0, -1, -1, 0),
        lambda: call("userfaultfd", 1),
    )

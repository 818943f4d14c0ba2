# goal 2: memory and messages of the kernel, and what it can be made to watch
def attack():
    perf = struct.pack("II", 1, 128) + bytes(120)
    return first(
        lambda: call("perf_event_open", perf, 0, -1, -1, 0),
        lambda: call("perf_event_open", perf, -1, 0, -1, 0),
        lambda: call("bpf", 0, bytes(128), 128),
        lambda: call("bpf", 5, bytes(128), 128),
        lambda: call("userfaultfd", 1),
        lambda: os.open("/dev/userfaultfd", os.O_RDWR),
        lambda: call("syslog", 3, bytes(64), 64),
        lambda: call("syslog", 10, None, 0),
        lambda: open("/proc/kcore", "rb").read(1) or fail(),
        lambda: open("/proc/kallsyms").read(1) or fail(),
        lambda: open("/proc/kmsg", "rb").read(1) or fail(),
        lambda: open("/proc/1/stack").read(1) or fail(),
        lambda: open("/dev/mem", "rb").read(1),
        lambda: open("/dev/kmsg", "rb").read(1),
        lambda: os.listdir("/sys/kernel/debug"),
        lambda: call("get_kernel_syms", 0),
        lambda: call("lookup_dcookie", 0, bytes(64), 64),
    )

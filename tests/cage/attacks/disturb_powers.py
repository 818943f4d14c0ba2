# goal 4: regain powers, or make the process traceable
def attack():
    import re

    status = no_error(lambda: open("/proc/self/status").read()) or ""
    left = [line for line in re.findall(r"Cap\w+:\s*(\w+)", status)[1:] if int(line, 16) and "CapBnd" not in status]
    return left or first(
        lambda: call("prctl", 4, 1, 0, 0, 0),
        lambda: call("prctl", 38, 0, 0, 0, 0),
        lambda: call("prctl", 22, 0, 0, 0, 0),
        lambda: call("prctl", 35, 1, 0, 0, 0),
        lambda: call("prctl", 8, 1, 0, 0, 0),
        lambda: call("seccomp", 0, 0, None),
        lambda: os.setuid(0),
        lambda: os.setresuid(0, 0, 0),
        lambda: os.setgroups([0]),
        lambda: call("capset", struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 1, 1, 1, 0, 0, 0)),
        lambda: call("personality", 0x0040000),
        lambda: call("modify_ldt", 1, bytes(16), 16),
        lambda: call("iopl", 3),
    )

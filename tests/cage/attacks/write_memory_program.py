# goal 1: start a program that never was a file, or by the hand of another
def attack():
    memory = os.memfd_create("x", 0)
    with open("/usr/bin/env", "rb") as program:
        os.write(memory, program.read())
    empty, vector = 0x1000, (ctypes.c_char_p * 2)(b"env", None)
    return first(
        lambda: child(lambda: os.execve(memory, ["env"], {})),
        lambda: child(lambda: call("execveat", memory, b"", vector, None, empty)),
        lambda: child(lambda: os.execv(f"/proc/self/fd/{memory}", ["env"])),
        lambda: child(lambda: os.execv("/lib64/ld-linux-x86-64.so.2", ["ld", "/usr/bin/env"])),
        lambda: child(lambda: call("execve", b"/usr/bin/env", vector, None)),
        lambda: child(lambda: call("vfork") or libc.execv(b"/usr/bin/env", vector)) and fail(),
        lambda: call("uselib", b"/usr/bin/env"),
        lambda: call("prctl", 35, 13, memory, 0, 0),  # the executable of this process is that file
    )

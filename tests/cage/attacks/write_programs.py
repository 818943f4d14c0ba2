# goal 1: start a program, which would do it for us
# holds: ungranted
def attack():
    memory = os.memfd_create("x")
    os.write(memory, b"#!/bin/sh\ntrue\n")
    return first(
        lambda: child(lambda: os.execv("/bin/true", ["true"])),
        lambda: child(lambda: os.execve(memory, ["x"], {})),
        lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0 or fail(),
        lambda: libc.system(b"/bin/true") == 0 or fail(),
        lambda: call("execveat", -100, b"/bin/true", None, None, 0),
    )

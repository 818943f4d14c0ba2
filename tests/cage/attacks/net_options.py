# goal 5: options of sockets that give the process at the other end, programs for the kernel, or other networks
def attack():
    ours, theirs = socket.socketpair()
    fd = ours.fileno()
    none = [errno.ENOPROTOOPT]
    one, much = struct.pack("i", 1), bytes(64)
    program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFFFFFF))
    filter_of_ours = struct.pack("HxxxxxxQ", 1, ctypes.addressof(program))

    def get(level, name):
        size = ctypes.create_string_buffer(struct.pack("i", 64))
        return call("getsockopt", fd, level, name, ctypes.create_string_buffer(much), size)

    def set_it(level, name, value):
        return call("setsockopt", fd, level, name, value, len(value))

    settings = {
        "SO_PASSCRED": (1, 16, one),
        "SO_ATTACH_FILTER": (1, 26, filter_of_ours),
        "SO_PASSSEC": (1, 34, one),
        "SO_MARK": (1, 36, one),
        "SO_PEEK_OFF": (1, 42, one),
        "SO_BUSY_POLL": (1, 46, struct.pack("i", 0)),
        "SO_ATTACH_BPF": (1, 50, one),
        "SO_ZEROCOPY": (1, 60, one),
        "SO_TXTIME": (1, 61, bytes(8)),
        "SO_PASSPIDFD": (1, 76, one),
        "TCP_FASTOPEN_CONNECT": (6, 30, one),
        "TCP_REPAIR": (6, 19, one),
        "TCP_MD5SIG": (6, 14, much),
        "IP_OPTIONS": (0, 4, much),
        "IPT_SO_SET_REPLACE": (0, 64, much),
        "IPV6_HOPOPTS": (41, 54, much),
        "SOL_NETLINK": (270, 1, one),
        "SOL_ALG": (279, 1, one),
        "SOL_XDP": (283, 1, one),
    }
    kept = {
        "SO_PEERCRED": 17,
        "SO_PEERSEC": 31,
        "SO_GET_FILTER": 26,
        "SO_COOKIE": 57,
        "SO_PEERGROUPS": 59,
        "SO_PEERPIDFD": 77,
    }
    return unless_refused(
        *((name, none, lambda name=name: set_it(*settings[name])) for name in settings),
        *((f"get {name}", none, lambda n=n: get(1, n)) for name, n in kept.items()),
        ("get SO_PEERPIDFD, in the lower halves", none, lambda: get(1 | 1 << 40, 77 | 1 << 40)),
        ("get IPT_SO_GET_INFO", none, lambda: get(0, 64)),
        ("set SO_PASSPIDFD, in the lower halves", none, lambda: set_it(1 | 1 << 40, 76 | 1 << 40, one)),
    )

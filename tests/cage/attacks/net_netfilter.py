# goal 3: talk to the kernel's own networks: netlink, packet and key sockets, bluetooth, virtual machines, by all roads
def attack():
    import fcntl

    families = {
        "netlink": 16,
        "packet": 17,
        "key": 15,
        "bluetooth": 31,
        "alg": 38,
        "vsock": 40,
        "xdp": 44,
        "smc": 43,
    }
    kinds = (1, 2, 3, 5, 10)
    roads = [
        lambda f=f, k=k, flags=flags: raw_socket(f, k | flags, 0)
        for f in families.values()
        for k in kinds
        for flags in (0, 0o2000000, 0o4000)
    ]
    return first(
        *roads,
        lambda: libc_checked(libc.socket(ctypes.c_long(0x100000002), 1, 0)),
        lambda: call("socket", 2 | 1 << 32, 1, 0),
        lambda: call("socketpair", 16, 2, 0, bytes(8)),
        lambda: call("socketpair", 1 | 1 << 32, 2, 0, bytes(8)),
        lambda: call("socketpair", 1, 2 | 1 << 33, 0, bytes(8)),
        lambda: fcntl.ioctl(0, 0x8913, bytes(40)),
        lambda: open("/dev/vsock"),
        lambda: open("/dev/net/tun", "r+b"),
        lambda: open("/dev/vhost-vsock", "r+b"),
    )

# goal 4: be taken apart, once dead, by a program of the host's that runs as root: the one that core files are piped to
def attack():
    import resource

    # The one value with which there is neither a file nor a pipe.
    none = (1, 1)
    for go in (
        lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
        lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 1)),
        lambda: call("setrlimit", 4 | 1 << 40, struct.pack("QQ", 0, 0)),
        lambda: call("prlimit64", 0, 4 | 1 << 40, struct.pack("QQ", 0, 0), None),
    ):
        no_error(go)
        if resource.getrlimit(resource.RLIMIT_CORE) != none:
            return resource.getrlimit(resource.RLIMIT_CORE)

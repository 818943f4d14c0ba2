# goal 1: leave a file on the host that runs as somebody else
def attack():
    open("own", "w").close()
    fd = os.open("own", os.O_RDONLY)
    for go in (
        lambda: os.chmod("own", 0o4755),
        lambda: os.fchmod(fd, 0o6755),
        lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755),
        lambda: os.mknod("node", 0o104755),
        lambda: os.mkdir("directory", 0o2755),
        lambda: call("fchmodat2", -100, b"own", 0o4755, 0),
    ):
        first(go)
    return [name for name in os.listdir(".") if os.stat(name).st_mode & 0o6000] or None

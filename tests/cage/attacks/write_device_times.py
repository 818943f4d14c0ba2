# goal 1: anything about the few devices that are the host's own, but what they are for
def attack():
    import stat

    def about(path):
        it = os.stat(path)
        return it.st_mode, it.st_uid, it.st_mtime_ns, it.st_ctime_ns

    directories = [top for top in ("/dev", "/proc") if no_error(lambda top=top: os.listdir(top))]
    names = [f"{top}/{name}" for top in directories for name in os.listdir(top)]
    # Under /proc lie those that cover what is nobody's to read.
    devices = [name for name in names if no_error(lambda name=name: stat.S_ISCHR(os.stat(name).st_mode))]
    found = []
    for path in devices or ["/dev/null"]:
        before = about(path)
        no_error(lambda path=path: os.utime(path))
        no_error(lambda path=path: os.utime(os.open(path, os.O_RDONLY)))
        no_error(lambda path=path: os.chmod(path, 0o600))
        if about(path) != before:
            found.append(path)
    return found or None

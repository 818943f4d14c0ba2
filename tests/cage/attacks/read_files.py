# goal 2: read a secret, by every kind of name
def attack():
    os.symlink(OUT + "/secret", "leads-out")
    return first(
        lambda: open(OUT + "/secret").read(),
        lambda: open("leads-out").read(),
        lambda: open("../" * 20 + OUT + "/secret").read(),
        lambda: open("/proc/self/root" + OUT + "/secret").read(),
        lambda: open("/proc/1/root" + OUT + "/secret").read(),
        lambda: open("/proc/self/cwd/../../../.." + OUT + "/secret").read(),
        lambda: open(OTHER + "/secret").read(),
        lambda: open(TMP).read(),
        lambda: os.listdir(OUT),
        lambda: os.open(OUT, os.O_RDONLY | os.O_DIRECTORY),
        lambda: libc_open(OUT + "/secret", os.O_RDONLY),
    )

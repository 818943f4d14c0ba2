# goal 2: learn whether something exists, and how large it is
# holds: tree
def attack():
    return first(
        lambda: os.stat(OUT + "/secret"),
        lambda: os.readlink(OUT + "/secret"),
        lambda: os.chdir(OUT),
        lambda: os.open(OUT + "/secret", os.O_PATH),
        lambda: os.access(OUT + "/secret", os.F_OK) or fail(),
        lambda: os.statvfs(OUT),
        lambda: os.listxattr(OUT + "/secret"),
    )

# goal 1: openat2, whose flags no filter can read
def attack():
    return call("openat2", -100, (OUT + "/secret").encode(), struct.pack("QQQ", os.O_RDWR, 0, 0), 24)

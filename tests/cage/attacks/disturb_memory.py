# goal 4: more memory in one process than granted
def attack():
    return child(lambda: len([bytearray(b"x") * (64 << 20) for _ in range(16)]))

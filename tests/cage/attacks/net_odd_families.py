# goal 3: every other family of sockets
def attack():
    return first(*(lambda f=f, t=t: raw_socket(f, t, 0) for f in range(1, 46) for t in (1, 2, 3, 5)))

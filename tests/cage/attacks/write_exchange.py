# goal 1: renameat2 with EXCHANGE and WHITEOUT between what is ours and what is not
def attack():
    open("own", "w").close()
    return first(
        lambda: call("renameat2", -100, b"own", -100, (RO + "/file").encode(), 2),
        lambda: call("renameat2", -100, b"own", -100, (OUT + "/secret").encode(), 2),
        lambda: call("renameat2", -100, (RO + "/file").encode(), -100, b"stolen", 4),
    )

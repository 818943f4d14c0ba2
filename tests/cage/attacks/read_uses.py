# goal 2: read by a call that opens for us
def attack():
    import sqlite3

    def database():
        connection = sqlite3.connect(":memory:")
        connection.execute("attach ? as x", (OUT + "/secret",))
        return connection.execute("select * from x.sqlite_master").fetchall()

    return first(
        database,
        lambda: ctypes.CDLL(OUT + "/secret"),
        lambda: call("acct", (OUT + "/secret").encode()),
        lambda: call("swapon", (OUT + "/secret").encode(), 0),
        lambda: call("quotactl", 0, (OUT + "/secret").encode(), 0, 0),
    )

# goal 4: fill memory with files
# holds: tree
def attack():
    def fill(directory):
        for i in range(100):
            with open(f"{directory}/f{i}", "wb") as file:
                file.write(bytes(4 << 20))
        return directory

    def many(directory):
        for i in range(200000):
            os.close(os.open(f"{directory}/n{i}", os.O_CREAT | os.O_WRONLY))
        return directory

    return first(lambda: fill("/tmp"), lambda: fill("/dev/shm"), lambda: many("/tmp"))

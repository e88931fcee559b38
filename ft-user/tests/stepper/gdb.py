"""From each instruction of an event, gdb finds `main`: `gdb -batch -nx -x gdb.py --args PROGRAM event NUMBER`."""

import gdb


def functions():
    frame, names = gdb.newest_frame(), []
    while frame is not None and len(names) < 32:
        names.append(frame.name())
        frame = frame.older()
    return names


def walk():
    for command in ("set pagination off", "set confirm off", "break marked", "run"):
        print(gdb.execute(command, to_string=True), end="")
    steps = lost = 0
    while functions()[0] != "run":
        names = functions()
        steps += 1
        if "main" not in names:
            lost += 1
            print(hex(gdb.newest_frame().pc()), names)
        gdb.execute("stepi", to_string=True)
    print(f"{steps} steps, {lost} lost")


try:
    walk()
except Exception as error:
    # What ends a script is no failure of gdb's.
    print(f"{type(error).__name__}: {error}")
    gdb.execute("quit 1")

# Socket activation as systemd does it, and the ways of Python's subprocess to leave descriptors out or pass them on.
import os, socket, subprocess, sys, threading

if len(sys.argv) == 1:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("activated.sock")
    listener.listen(1)
    pid = os.fork()
    if pid == 0:
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execv(sys.executable, [sys.executable, sys.argv[0], "service"])
    client = socket.socket(socket.AF_UNIX)
    client.connect("activated.sock")
    client.sendall(b"request")
    print(client.recv(100).decode())
    print(os.waitpid(pid, 0)[1])
    listener.detach(), client.detach()
    file = os.open("all", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for number in range(3, 1024):
        os.dup2(file, number)
    for number in range(3, 1024):
        os.write(number, b"%d\n" % number)
    os.closerange(3, 1024)
    read, write = os.pipe()
    echo = subprocess.run(["sh", "-c", f"echo passed >&{write}"], pass_fds=[write])
    print(read, write, echo.returncode, os.read(read, 100))
    for close in (True, False):
        print(subprocess.check_output(["sh", "-c", "echo output; exit 0"], close_fds=close))
    def thread(number):
        with open(f"thread{number}", "w") as file:
            subprocess.run(["echo", str(number)], stdout=file)
    threads = [threading.Thread(target=thread, args=[n]) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
else:
    assert os.environ["LISTEN_PID"] == str(os.getpid())
    connection, _ = socket.socket(fileno=3).accept()
    connection.sendall(b"answer to " + connection.recv(100))

"""Runs a command in a pseudo-terminal of 60 x 12 and prints what it wrote there: terminal.py COMMAND…"""
import fcntl, os, pty, struct, sys, termios

child, terminal = pty.fork()
if child == 0:
    # The size is set before the command looks at it.
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    sys.stdout.buffer.write(chunk)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

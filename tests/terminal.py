"""Runs a command in a pseudo-terminal of 60 x 12 and prints what it wrote there: terminal.py COMMAND…

With --interrupt TEXT before the command, Ctrl-C is pressed once that text has been written.
"""
import fcntl, os, pty, struct, sys, termios

command = sys.argv[1:]
awaited = b""
if command[0] == "--interrupt":
    awaited, command = command[1].encode(), command[2:]
child, terminal = pty.fork()
if child == 0:
    # The size is set before the command looks at it.
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    os.execvp(command[0], command)
written = b""
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    sys.stdout.buffer.write(chunk)
    written += chunk
    if awaited and awaited in written:
        os.write(terminal, b"\x03")
        awaited = b""
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

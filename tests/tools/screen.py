#!/usr/bin/python3
"""A terminal, a shell with one job, and a user who looks at the screen and types.

	screen.py COLUMNS ROWS STEP... -- command...

does the steps in turn.  Exits with 0, or names the step that failed, prints the screen and exits
with 1.  The screen is that of python3-pyte.  Steps that wait do so for $DEADLINE seconds at most.

	type:TEXT	types TEXT; \\e is ESC, ^C is Ctrl-C
	see:TEXT	waits until the screen shows TEXT
	lose:TEXT	waits until the screen does not show TEXT
	row:N:TEXT	waits until row N, from 1 on, matches the shell pattern TEXT
	last:TEXT	waits until the last row does
	size:CxR	changes the size of the terminal
	size-within:CxR	does so after a part of a frame has come
	fits		fails if a row was wider than the screen
	raw:TEXT	fails unless the output, as it came, has TEXT; noraw:TEXT if it has it
	ascii		fails if the output has a byte that is not ASCII
	usual		waits until the modes are as before the command, the cursor is visible and
			the other screen is left
	kill:NAME	sends the signal to the command
	deaf:NAME	takes no output until the terminal has no room for more, sends the signal,
			and waits for the end
	late:NAME	sends the signal to the command, and lets its guard of the terminal go on only
			when a shell has set its own modes
	stopped		waits until the shell sees the command stopped
	fg		continues it as a shell does, which has used the terminal
	end:N		waits for the exit status N; of a signal: its name
	do:COMMAND	runs a command of the shell sh; fails if that fails
	until:COMMAND	runs it until it succeeds
	keep:N:TEXT	types TEXT N times, and fails if the memory of the command has grown by more
			than 256 KiB after the first fifth
"""
import codecs
import fcntl
import fnmatch
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

DEADLINE = float(os.environ.get("DEADLINE", "30"))
WHOLE = b"\x1b[2J"  # how a whole frame begins


class Screen(pyte.Screen):
    """Notes a row that is wider than the screen."""

    too_wide = False

    def draw(self, data):
        for char in data:
            wide = 2 if pyte.screens.wcwidth(char) == 2 else 1
            if self.cursor.x + wide > self.columns:
                self.too_wide = True
            super().draw(char)

    def erase_in_display(self, how=0, *args, **kwargs):
        if how == 2:  # a new frame: what came before may be of another size
            self.too_wide = False
        super().erase_in_display(how, *args, **kwargs)


class Failed(Exception):
    pass


def set_size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def be_shell(slave, reports, orders, command):
    """The shell of the session: starts the job, reports its stops and its end, obeys `fg`."""
    modes = termios.tcgetattr(slave)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(slave, os.getpid())
        for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for fd in range(3):
            os.dup2(slave, fd)
        os.execvp(command[0], command)
    os.write(reports, b"job %d\n" % job)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(slave, os.getpgrp())
        if not os.WIFSTOPPED(status):
            os.write(reports, b"end %d\n" % status)
            break
        termios.tcsetattr(slave, termios.TCSANOW, modes)  # for its own line of input
        os.write(reports, b"stop %d\n" % status)
        if not os.read(orders, 1):
            break
        os.tcsetpgrp(slave, job)
        os.killpg(job, signal.SIGCONT)
        os.write(reports, b"fg\n")
    os.read(orders, 1)  # until the terminal is no longer needed
    os._exit(0)


class Desk:
    def __init__(self, columns, rows, command):
        self.master, slave = os.openpty()
        set_size(self.master, columns, rows)
        self.before = termios.tcgetattr(self.master)
        self.reports, reports = os.pipe()
        orders, self.orders = os.pipe()
        self.raw = b""
        self.told = b""
        self.screen = Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        shell = os.fork()
        if shell == 0:
            for fd in (self.master, self.reports, self.orders):
                os.close(fd)
            be_shell(slave, reports, orders, command)
        for fd in (slave, reports, orders):
            os.close(fd)
        self.wait(lambda: b"job " in self.told, "job")
        self.job = int(self.told.split()[1])

    def take(self, seconds, most=65536):
        """Takes what comes within a moment.  Returns whether anything came."""
        ready, _, _ = select.select([self.master, self.reports], [], [], seconds)
        if self.reports in ready:
            self.told += os.read(self.reports, 4096)
        if self.master in ready:
            try:
                data = os.read(self.master, most)
            except OSError:  # nobody has the terminal open
                data = b""
                time.sleep(0.01)
            self.raw += data
            self.stream.feed(data)
        return bool(ready)

    def wait(self, condition, step):
        until = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > until:
                raise Failed(step)
            self.take(0.02)

    def check(self, condition, step):
        while self.take(0):
            pass
        if not condition:
            raise Failed(step)

    def shows(self, text):
        return any(text in row for row in self.screen.display)

    def is_usual(self):
        return (
            termios.tcgetattr(self.master) == self.before
            and not self.screen.cursor.hidden
            and pyte.modes.DECAWM in self.screen.mode
            and self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h")
        )

    def row_is(self, number, pattern):
        row = self.screen.display[number - 1]
        return fnmatch.fnmatchcase(row.rstrip(), pattern)

    def has_ended(self, what):
        for line in self.told.decode().splitlines():
            if line.startswith("end "):
                status = int(line.split()[1])
                if os.WIFSIGNALED(status):
                    return signal.Signals(os.WTERMSIG(status)).name == "SIG" + what
                return str(os.WEXITSTATUS(status)) == what
        return False

    def memory(self):
        with open("/proc/%d/status" % self.job, encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    # --- steps: each has the name of its method, after do_ ---------------------------

    def do_type(self, text):
        text = text.replace("\\e", "\x1b")
        for code in range(64, 96):
            text = text.replace("^" + chr(code), chr(code - 64))
        os.write(self.master, text.encode())

    def do_see(self, text):
        self.wait(lambda: self.shows(text), "see:" + text)

    def do_lose(self, text):
        self.wait(lambda: not self.shows(text), "lose:" + text)

    def do_row(self, text):
        number, pattern = text.split(":", 1)
        self.wait(lambda: self.row_is(int(number), pattern), "row:" + text)

    def do_last(self, text):
        self.wait(lambda: self.row_is(self.screen.lines, text), "last:" + text)

    def do_size(self, text):
        columns, rows = (int(each) for each in text.split("x"))
        self.screen.resize(rows, columns)
        set_size(self.master, columns, rows)

    def do_size_within(self, text):
        while self.take(0):
            pass
        os.write(self.master, b"\x0c")  # Ctrl-L: a whole frame
        before = self.raw.count(WHOLE)
        until = time.monotonic() + DEADLINE
        while self.raw.count(WHOLE) == before and time.monotonic() < until:
            self.take(0.02, 300)  # no more than the beginning of that frame
        self.do_size(text)
        self.wait(lambda: self.raw.count(WHOLE) >= before + 2, "size-within:" + text)

    def do_fits(self, _):
        self.check(True, "fits")
        self.check(not self.screen.too_wide, "fits")

    def do_raw(self, text):
        self.check(True, "raw")
        self.check(codecs.decode(text, "unicode_escape").encode() in self.raw, "raw:" + text)

    def do_noraw(self, text):
        self.check(True, "noraw")
        self.check(
            codecs.decode(text, "unicode_escape").encode() not in self.raw, "noraw:" + text
        )

    def do_ascii(self, _):
        self.check(True, "ascii")
        self.check(self.raw.isascii(), "ascii")

    def do_usual(self, _):
        self.wait(self.is_usual, "usual")

    def do_kill(self, name):
        os.kill(self.job, signal.Signals["SIG" + name])

    def do_deaf(self, name):
        for _ in range(100):
            os.write(self.master, b"\x0c")  # Ctrl-L: a whole frame
            time.sleep(0.01)
        self.do_kill(name)
        until = time.monotonic() + DEADLINE
        while b"end " not in self.told:
            if not select.select([self.reports], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed("deaf:" + name)
            self.told += os.read(self.reports, 4096)

    def guard(self):
        """Returns the process that guards the terminal; 0: there is none."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
                    words = file.read().split()
            except OSError:  # it has ended
                continue
            if words[1] == "(gpulease-guard)" and words[3] == str(self.job):
                return int(pid)
        return 0

    def do_late(self, name):
        self.wait(self.guard, "late:" + name)
        guard = self.guard()
        os.kill(guard, signal.SIGSTOP)
        self.do_kill(name)
        self.wait(lambda: b"end " in self.told, "late:" + name)
        termios.tcsetattr(self.master, termios.TCSANOW, self.before)
        os.kill(guard, signal.SIGCONT)

    def do_stopped(self, _):
        self.wait(lambda: self.told.splitlines()[-1].startswith(b"stop"), "stopped")

    def do_fg(self, _):
        self.screen.reset()  # the shell has used the screen
        os.write(self.orders, b"f")
        self.wait(lambda: self.told.splitlines()[-1] == b"fg", "fg")

    def do_end(self, what):
        self.wait(lambda: b"end " in self.told, "end:" + what)
        self.check(self.has_ended(what), "end:" + what)

    def do_do(self, command):
        self.check(subprocess.call(["sh", "-c", command]) == 0, "do:" + command)

    def do_until(self, command):
        self.wait(lambda: subprocess.call(["sh", "-c", command]) == 0, "until:" + command)

    def do_keep(self, text):
        count, keys = text.split(":", 1)
        before = 0
        for i in range(int(count)):
            self.do_type(keys)
            self.take(0.05)
            if i == int(count) // 5:
                before = self.memory()
        after = self.memory()
        self.check(after <= before + 256, "keep: %d KiB, then %d" % (before, after))


def main():
    words = sys.argv[1:]
    at = words.index("--")
    desk = Desk(int(words[0]), int(words[1]), words[at + 1 :])
    failed = None
    try:
        for step in words[2:at]:
            name, _, text = step.partition(":")
            getattr(desk, "do_" + name.replace("-", "_"))(text)
    except Failed as fault:
        failed = fault
    if failed:
        print("failed:", failed)
        print("reports:", desk.told.decode().replace("\n", "; "))
        print("\n".join(row.rstrip() for row in desk.screen.display))
    try:
        os.killpg(desk.job, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return 1 if failed else 0


sys.exit(main())

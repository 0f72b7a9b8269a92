#!/usr/bin/python3
"""Random scenes of jobs on a few simulated GPUs, and an oracle of its own for order and limits.

	scenes.py [--seed N] [--scenes N] [--seconds S] [-v]

In a scene some jobs hold GPUs, others queue up behind them, and then, step by step, jobs end, are
killed, cancelled, released or come.  The jobs are of all kinds: whole GPUs, shares, declared
memory, lists of GPUs, priorities, time limits, singletons, jobs after jobs, held ones, jobs without
GPUs; plain, supervised and in the background.  Each runs until the scene lets it end, so a start
is never a matter of time.

The oracle knows the rules of gpulease-queue(7) and no line of the program.  After each step, when
`--queue` has nothing left that can start:

	room	no GPU has more than it holds, a job has the GPUs that it may have, `all-gpus` holds
	head	the first waiting job would not have room if the later jobs that started in this step
		had not
	ever	the first waiting job has room once all jobs with a time limit have ended
	delay	the later jobs that started in this step end, by their limits, before the first
		waiting job could have started
	twins	of two waiting jobs with the same request the first starts first
	act	what can start has started
	after	no job starts before what it waits for, and only after what had to be 0
	end	every job that is not ended by the scene runs, once, and its status is its own

A violation prints the scene and its seed, and ends the run.  Prints TAP.
"""
import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CARD_MIB = 24576
MARGIN_MIB = 512
GRACE_S = 15  # the default grace of a time limit, and what a later job leaves beside it
PATIENCE_S = float(os.environ.get("DEADLINE", "30"))
GPULEASE = os.environ.get("GPULEASE", "build/gpulease")
COMMAND = 'exec 3<>"$1"; echo "$2 ${GPULEASE_ID-} ${CUDA_VISIBLE_DEVICES-}" >"$3"; read -r s <&3; exit "$s"'


class Violation(Exception):
    pass


class Job:
    """One job of a scene: what it asks for, and what became of it."""

    def __init__(self, number, rng, scene):
        self.number = number
        self.gpus, self.share, self.mib, self.limit_s = 1, None, None, None
        self.priority, self.allow, self.name = 0, set(range(scene.gpus)), None
        self.after, self.after_ok, self.is_held, self.way = None, None, False, "plain"
        self.status = rng.choice((0, 0, 0, 1, 7))
        self.id = self.process = self.started_s = self.ended_s = self.has = None
        self.is_cut = False  # ended by the scene, or by what it waits for
        self.options = []
        self.choose(rng, scene)

    def choose(self, rng, scene):
        """Chooses what the job asks for."""
        kind = rng.choice(("whole",) * 4 + ("share", "share", "memory", "memory", "both", "none"))
        if kind == "whole":
            self.gpus = rng.randint(1, scene.quota or scene.gpus)
        elif kind == "none":
            self.gpus = 0
        else:
            if kind != "memory":
                self.share = rng.choice((0.2, 0.25, 0.5, 0.8))
            if kind != "share":
                self.mib = rng.choice((2000, 6000, 11000, 20000))
        amount = self.share if self.share else self.gpus
        self.options = ["-n", str(amount)]
        if self.mib:
            self.options += ["--vram", str(self.mib)]
        if rng.random() < 0.4:
            self.limit_s = rng.choice((600, 3600, 7200, 14400))
            self.options += ["--time", f"{self.limit_s}s"]
        if rng.random() < 0.3:
            self.priority = rng.choice((-1, 1, 2))
            self.options += ["--priority", str(self.priority)]
        if self.gpus:
            self.choose_place(rng, scene)
        self.choose_order(rng, scene)
        self.way = rng.choice(("plain",) * 3 + ("supervised", "background"))

    def choose_place(self, rng, scene):
        """Perhaps only some of the GPUs will do."""
        if rng.random() < 0.25 and scene.gpus > 1:
            some = set(rng.sample(range(scene.gpus), rng.randint(self.gpus, scene.gpus)))
            if len(some) == scene.gpus:
                return
            how = rng.choice(("--allow", "--except"))
            listed = some if how == "--allow" else set(range(scene.gpus)) - some
            self.allow = some
            self.options += [how, ",".join(map(str, sorted(listed)))]

    def choose_order(self, rng, scene):
        """Perhaps it waits for a job, for a job of its name, or for a release."""
        chance = rng.random()
        before = [job for job in scene.jobs if job.id and job.gpus]
        if chance < 0.1:
            self.name = "one-at-a-time"
            self.options += ["--singleton", "--name", self.name]
        elif chance < 0.2 and before:
            which = rng.choice(before)
            if rng.random() < 0.5:
                self.after = which
                self.options += ["--after", str(which.id)]
            elif which.ended_s is None:  # that of an earlier one may not be known
                self.after_ok = which
                self.options += ["--after-ok", str(which.id)]
        elif chance < 0.25:
            self.is_held = True
            self.options += ["--hold"]

    def need(self):
        """What it needs of each of its GPUs: the share, the memory."""
        if self.share is None and self.mib is None:
            return 1.0, CARD_MIB
        part = int(self.share * CARD_MIB) if self.share and not self.mib else 0
        return self.share or 0.0, self.mib or part

    def is_whole(self):
        return self.share is None and self.mib is None

    def quota(self):
        """What it counts for all-gpus."""
        if self.is_whole() or self.share is None:
            return float(self.gpus)
        return max(self.share, (self.mib or 0) / CARD_MIB)

    def runs(self):
        return self.has is not None and self.ended_s is None

    def waits(self):
        return self.id is not None and self.has is None and self.ended_s is None

    def is_before(self, other):
        return (-self.priority, self.place) < (-other.priority, other.place)

    def __str__(self):
        return f"{self.number}: {self.way} gpulease {' '.join(self.options)} (exits {self.status})"


class Scene:
    """A state directory, its jobs, and what was done to them."""

    def __init__(self, seed, verbose):
        self.rng = random.Random(seed)
        self.seed, self.verbose = seed, verbose
        self.gpus = self.rng.choice((1, 2, 3, 4, 4))
        self.quota = self.rng.choice((None, None, None, self.gpus, max(1, self.gpus - 1)))
        self.jobs, self.log, self.fresh = [], [], []
        self.places = 0
        self.folder = tempfile.mkdtemp(prefix="gpulease-scenes.")
        self.report = os.path.join(self.folder, "report")
        os.mkfifo(self.report)
        self.report_fd = os.open(self.report, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.unread = b""
        config = os.path.join(self.folder, "conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("record-ends = yes\nmax-priority = 10\n")
            if self.quota:
                file.write(f"all-gpus = {self.quota}\n")
        self.environment = dict(os.environ, XDG_STATE_HOME=self.folder, HOME=self.folder,
                                GPULEASE_SIM=str(self.gpus), GPULEASE_CONFIG=config)
        self.tickets = os.path.join(self.folder, f"gpulease/sim-{self.gpus}x{CARD_MIB}/tickets")
        self.ask("-n", "0", "true")  # makes the files

    # --- doing things ------------------------------------------------------------------------

    def say(self, text):
        self.log.append(text)
        if self.verbose:
            print("#", text, flush=True)

    def ask(self, *words):
        done = subprocess.run([GPULEASE, *words], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout, done.stderr

    def size(self):
        try:
            return os.stat(self.tickets).st_size
        except FileNotFoundError:
            return 0

    def submit(self, job):
        """Starts the job, and returns when it has its ticket."""
        hold = os.path.join(self.folder, f"hold.{job.number}")
        os.mkfifo(hold)
        job.hold_fd = os.open(hold, os.O_RDWR | os.O_CLOEXEC)
        words = [GPULEASE, *job.options]
        if job.way == "supervised":
            words += ["--report"]
        elif job.way == "background":
            words += ["--submit", "-o", os.path.join(self.folder, f"log.{job.number}")]
        words += ["--", "sh", "-c", COMMAND, "sh", hold, str(job.number), self.report]
        self.say(f"start {job}")
        before = self.size()
        job.errors = open(os.path.join(self.folder, f"err.{job.number}"), "wb")
        process = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=job.errors)
        self.jobs.append(job)
        self.places += 1
        job.place = self.places
        if job.way == "background":
            out, _ = process.communicate(timeout=PATIENCE_S)
            if process.returncode != 0 or not out.strip().isdigit():
                raise Violation(f"act: --submit of job {job.number} ended with {process.returncode}")
            job.id = int(out)
            return
        job.process = process
        until = time.monotonic() + PATIENCE_S
        while self.size() <= before:
            if process.poll() is not None:
                raise Violation(f"end: job {job.number} has no ticket, status {process.returncode}")
            if time.monotonic() > until:
                raise Violation(f"act: job {job.number} takes no ticket")
            time.sleep(0.002)
        job.id = self.size() // 512 - 1

    def let_end(self, job):
        self.say(f"end {job.number}")
        os.write(job.hold_fd, f"{job.status}\n".encode())
        self.await_end(job)

    def kill(self, job):
        self.say(f"kill {job.number}")
        job.is_cut = True
        job.process.kill()
        self.await_end(job)

    def cancel(self, job):
        self.say(f"cancel {job.number}")
        job.is_cut = True
        status, _, errors = self.ask("--cancel", str(job.id))
        if status != 0:
            raise Violation(f"end: --cancel of job {job.number} said {errors}")
        self.await_end(job)

    def release(self, job):
        self.say(f"release {job.number}")
        before = self.size()
        status, _, errors = self.ask("--release", str(job.id))
        if status != 0:
            raise Violation(f"act: --release of job {job.number} said {errors}")
        until = time.monotonic() + PATIENCE_S
        # the request, and then the new ticket of the job's own process
        while self.size() < before + 2 * 512 and not self.has_reported(job):
            if time.monotonic() > until:
                raise Violation(f"act: job {job.number} takes no new ticket when it is released")
            time.sleep(0.002)
        job.is_held = False
        self.places += 1
        job.place = self.places

    def await_end(self, job):
        until = time.monotonic() + PATIENCE_S
        while not self.has_ended(job):
            if time.monotonic() > until:
                raise Violation(f"end: job {job.number} does not end")
            time.sleep(0.005)

    def has_ended(self, job):
        """Whether the job is over; then its status is looked at."""
        if job.ended_s is not None:
            return True
        if job.process:
            status = job.process.poll()
            if status is None:
                return False
        elif job.is_cut or job.has is None:
            status = None
            code, out, _ = self.ask("--queue", "--json")
            running = self.ask("--status", "--json")[1]
            if code != 0 or f'"ticket": {job.id},' in out or f'"ticket": {job.id},' in running:
                return False
        else:
            status, _, _ = self.ask("--wait-for", str(job.id))
        self.read_reports()
        job.ended_s = time.monotonic()
        if job.has is not None and not job.is_cut and status is not None and status != job.status:
            raise Violation(f"end: job {job.number} ended with {status}, its command with {job.status}")
        return True

    # --- seeing things -----------------------------------------------------------------------

    def read_reports(self):
        """Takes the starts that the commands have reported."""
        while select.select([self.report_fd], [], [], 0)[0]:
            self.unread += os.read(self.report_fd, 65536)
        *lines, self.unread = self.unread.split(b"\n")
        for line in lines:
            number, ident, *gpus = line.decode().split()
            job = self.jobs[int(number) - 1]
            if job.has is not None:
                raise Violation(f"end: job {number} has started twice")
            if int(ident) != job.id:
                raise Violation(f"end: job {number} has id {ident}, not {job.id}")
            job.has = {int(gpu) for gpu in gpus[0].split(",")} if gpus else set()
            job.started_s = time.monotonic()
            self.fresh.append(job)
            self.say(f"   {number} runs on {sorted(job.has)}")

    def has_reported(self, job):
        self.read_reports()
        return job.has is not None

    def settle(self):
        """Returns when nothing can start any more."""
        until = time.monotonic() + PATIENCE_S
        while True:
            old = self.ended_leases()
            status, out, _ = self.ask("--queue", "--json")
            rows = json.loads(out)["queue"] if status == 0 else None
            self.read_reports()
            queued = {row["ticket"] for row in rows or ()}
            late = [job for job in self.jobs if job.waits() and job.id not in queued]
            can = [row["ticket"] for row in rows or () if row["can_start"]]
            head = self.head()
            if head and self.fits(head, self.running()):
                can.append(head.id)  # whatever the program says
            if rows is not None and not old and not can and not self.gives_up() and \
                    not self.is_late(late):
                return
            if time.monotonic() > until:
                raise Violation(f"act: jobs with the ids {can} can start, "
                                f"{[job.number for job in late]} neither wait nor run, and "
                                f"{old} have ended and keep GPUs")
            time.sleep(0.02)

    def ended_leases(self):
        """Returns the jobs that have ended and still have a GPU."""
        leases = [lease["ticket"] for gpu in json.loads(self.ask("--status", "--json")[1])["gpus"]
                  for lease in gpu["leases"]]
        return [job.number for job in self.jobs if job.ended_s is not None and job.id in leases]

    def is_late(self, jobs):
        """Whether jobs that are not in the queue have neither started nor ended."""
        for job in jobs:
            if job.process and job.process.poll() is None:
                return True
            if not self.has_ended(job):
                return True
            if not job.is_cut and job.has is None:
                raise Violation(f"end: job {job.number} has ended and never ran")
        return False

    def gives_up(self):
        """Whether a job has not yet ended of which the job before it has failed."""
        for job in self.jobs:
            if job.waits() and job.after_ok and job.after_ok.ended_s is not None and \
                    not self.was_good(job.after_ok):
                job.is_cut = True
                if not self.has_ended(job):
                    return True
        return False

    @staticmethod
    def was_good(job):
        return job.status == 0 and not job.is_cut

    # --- the oracle --------------------------------------------------------------------------

    def is_free_to_start(self, job):
        """Whether nothing but room keeps the job from starting."""
        if job.is_held:
            return False
        for other in (job.after, job.after_ok):
            if other and other.ended_s is None:
                return False
        if job.after_ok and not self.was_good(job.after_ok):
            return False  # it gives up
        if job.name:
            return not any(other.name == job.name and other is not job and
                           (other.runs() or other.waits() and not other.is_held and
                            other.is_before(job)) for other in self.jobs)
        return True

    def room(self, job, running):
        """Returns the GPUs that have room for the job beside those that run."""
        share, mib = job.need()
        good = set()
        for gpu in job.allow:
            beside = [other for other in running if gpu in other.has]
            if job.is_whole():
                if not beside:
                    good.add(gpu)
                continue
            if any(other.is_whole() for other in beside):
                continue
            used_share = sum(other.need()[0] for other in beside)
            used_mib = sum(other.need()[1] for other in beside)
            if used_share + share <= 1.0001 and used_mib + mib + MARGIN_MIB <= CARD_MIB:
                good.add(gpu)
        return good

    def fits(self, job, running):
        if self.quota and sum(other.quota() for other in running) + job.quota() > self.quota + 0.001:
            return False
        return len(self.room(job, running)) >= job.gpus

    def check_room(self):
        running = self.running()
        for job in running:
            if len(job.has) != job.gpus or not job.has <= job.allow:
                raise Violation(f"room: job {job.number} has {sorted(job.has)}")
            others = [other for other in running if other is not job]
            needs = [other for other in others if other.has & job.has]
            if needs and (job.is_whole() or any(other.is_whole() for other in needs)):
                raise Violation(f"room: jobs {job.number} and {needs[0].number} share a whole GPU")
        for gpu in range(self.gpus):
            beside = [job for job in running if gpu in job.has and not job.is_whole()]
            if sum(job.need()[0] for job in beside) > 1.0001 or \
                    sum(job.need()[1] for job in beside) > CARD_MIB:
                raise Violation(f"room: GPU {gpu} has {[job.number for job in beside]}")
        if self.quota and sum(job.quota() for job in running) > self.quota + 0.001:
            raise Violation(f"room: all-gpus = {self.quota} does not hold")

    def could_start_s(self, head, running):
        """Returns when the limits let the job start, in seconds from now; None: never known."""
        now = time.monotonic()
        left = sorted(running, key=lambda job: self.ends_s(job, now))
        while left:
            first = self.ends_s(left[0], now)
            if first == float("inf"):
                return None
            left = [job for job in left if self.ends_s(job, now) > first]
            if self.fits(head, left):
                return first
        return None

    @staticmethod
    def ends_s(job, now):
        if job.limit_s is None:
            return float("inf")
        return job.started_s + job.limit_s - now

    def running(self):
        return [job for job in self.jobs if job.runs() and job.gpus]

    def head(self):
        """Returns the first waiting job that only waits for GPUs, or None."""
        waiting = [job for job in self.jobs if job.waits() and job.gpus and
                   self.is_free_to_start(job)]
        return min(waiting, key=lambda job: (-job.priority, job.place), default=None)

    def check_head(self, before):
        """@before: the head before the step."""
        head, running = self.head(), self.running()
        if not head:
            return
        later = [job for job in self.fresh if job in running and head.is_before(job)
                 and job.place < self.places_before and head.place < self.places_before]
        others = [job for job in running if job not in later]
        if head not in self.was_free:
            return
        if self.fits(head, others):
            raise Violation(f"head: job {head.number} waits because {[job.number for job in later]} "
                            "came first")
        if head is not before:
            return
        forever = [job for job in later if job.limit_s is None]
        if not self.fits(head, forever):
            raise Violation(f"ever: job {head.number} waits for {[job.number for job in forever]}, "
                            "which are later and have no limit")
        at = self.could_start_s(head, others)
        now = time.monotonic()
        beyond = [job for job in later if at is not None and self.ends_s(job, now) > at]
        still = [job for job in others if at is not None and self.ends_s(job, now) > at]
        if at is not None and not self.fits(head, still + beyond):
            raise Violation(f"delay: job {head.number} could start in {at:.0f} s, and "
                            f"{[job.number for job in beyond]} are later and run longer")

    def check_twins(self):
        for late in self.fresh:
            for job in self.jobs:
                if job.waits() and job.options == late.options and job.place < late.place and \
                        job.place < self.places_before and job in self.was_free:
                    raise Violation(f"twins: job {late.number} started before job {job.number}")

    def check_after(self):
        for job in self.fresh:
            for other in (job.after, job.after_ok):
                if other and other.ended_s is None:
                    raise Violation(f"after: job {job.number} runs beside job {other.number}")
            if job.after_ok and not self.was_good(job.after_ok):
                raise Violation(f"after: job {job.number} runs, job {job.after_ok.number} failed")
            if job.name:
                for other in self.jobs:
                    if other is not job and other.name == job.name and other.runs() and job.runs():
                        raise Violation(f"after: jobs {job.number} and {other.number} are singletons")

    def step(self, action, *operands):
        """Does one thing, waits until all has followed from it, and looks at the result."""
        self.was_free = {job for job in self.jobs if job.waits() and self.is_free_to_start(job)}
        head = self.head()
        self.places_before = self.places + 1
        self.fresh = []
        action(*operands)
        self.settle()
        self.check_room()
        self.check_after()
        self.check_twins()
        self.check_head(head)

    # --- the scene ---------------------------------------------------------------------------

    def come(self):
        self.submit(Job(len(self.jobs) + 1, self.rng, self))

    def lid(self):
        """A job that holds all GPUs that jobs may have."""
        job = Job(len(self.jobs) + 1, random.Random(0), self)
        job.__dict__.update(gpus=self.quota or self.gpus, share=None, mib=None, limit_s=None,
                            priority=0, allow=set(range(self.gpus)), name=None, after=None,
                            after_ok=None, is_held=False, way="plain", status=0)
        job.options = ["-n", str(job.gpus)]
        self.step(self.submit, job)
        return job

    def random_step(self):
        running = [job for job in self.jobs if job.runs()]
        waiting = [job for job in self.jobs if job.waits()]
        held = [job for job in waiting if job.is_held]
        chance = self.rng.random()
        if held and (chance < 0.15 or not running):
            self.step(self.release, self.rng.choice(held))
        elif waiting and chance < 0.25:
            self.step(self.cancel, self.rng.choice(waiting))
        elif running and chance < 0.35:
            plain = [job for job in running if job.way == "plain"]
            self.step(self.kill, self.rng.choice(plain)) if plain else None
        elif running and chance < 0.85:
            self.step(self.let_end, self.rng.choice(running))
        elif len(self.jobs) < 14:
            self.step(self.come)

    def run(self):
        for _ in range(self.rng.randint(0, 2)):
            self.step(self.come)
        lid = self.lid() if self.rng.random() < 0.8 else None
        for _ in range(self.rng.randint(3, 7)):
            self.step(self.come)
        if lid and lid.runs():
            self.step(self.let_end, lid)
        for _ in range(self.rng.randint(4, 10)):
            self.random_step()
        while True:  # all run to their end
            running = [job for job in self.jobs if job.runs()]
            held = [job for job in self.jobs if job.waits() and job.is_held]
            if held:
                self.step(self.release, held[0])
            elif running:
                self.step(self.let_end, self.rng.choice(running))
            else:
                break
        left = [job.number for job in self.jobs if job.waits()]
        if left:
            raise Violation(f"act: jobs {left} wait, and none runs")

    def close(self):
        for job in self.jobs:
            if job.process and job.process.poll() is None:
                job.process.kill()
            if job.process:
                job.process.stdout.close()
                job.process.wait()
            job.errors.close()
            os.close(job.hold_fd)
        if any(job.way == "background" and job.ended_s is None for job in self.jobs):
            self.ask("--cancel", "all", "--yes")
        os.close(self.report_fd)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_scene(seed, verbose):
    """Returns why the scene has failed, or None."""
    scene = Scene(seed, verbose)
    try:
        scene.run()
    except Violation as violation:
        quota = f", all-gpus = {scene.quota}" if scene.quota else ""
        lines = [f"seed {seed}: {violation}", f"{scene.gpus} GPUs{quota}", *scene.log]
        lines += ["the queue:", *scene.ask("--queue")[1].splitlines()]
        return lines
    finally:
        scene.close()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--scenes", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    scenes = options.scenes or (1 if options.seconds is None else sys.maxsize)
    until = time.monotonic() + (options.seconds or float("inf"))
    done, lines = 0, None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"# seed {seed}", flush=True)
    while done < scenes and time.monotonic() < until and not lines:
        lines = run_scene(seed + done, options.verbose)
        done += 1
    for line in lines or ():
        print("#", line)
    print(f"{'not ok' if lines else 'ok'} 1 - {done} scenes have no violation")
    print("1..1")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

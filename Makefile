# gpulease: GPU leases on a shared machine.  GNU make; no configure step.
#
#	make                 build/gpulease and build/gpulease-simjob
#	make demo            two jobs that wait for each other, and a status
#	make deps check      install the tools of the tests, run the quick ones (5 minutes at most)
#	make deps-extra      install what some tests use beside these: Slurm
#	make check-slow      the long ones: every kill and stop point, the torture (SLOW_SECONDS; with
#	                     ROTATE=N another of them comes first)
#	make lint            what needs no running: warnings, format, manuals, layers
#	make fuzz            the fuzz targets, FUZZ_SECONDS each; needs clang
#	make bench           the figures, beside those of other programs
#	make install         for all users; MODE=lab GROUP=name or MODE=private; PREFIX, DESTDIR
#	make install-srun    a symbolic link srun in PREFIX/lib/gpulease/bin
#	make uninstall       removes what these two put there
#	make deb             a Debian package, in build/
#	make dist            a tar.gz of the last commit, in build/
#
# SANITIZE=address,undefined builds and checks in build-san; B names another directory.
# CHECK_SECONDS=N: of the tests and of lint, what has not ended after N seconds is skipped.

PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
VERSION := 0.1

# Not from the environment: tcsh exports the user's own group under the second name.
MODE  =
GROUP =

FUZZ_SECONDS ?= 30
SLOW_SECONDS ?= 1800
ROTATE ?= 0
TORTURE_SECONDS ?= 120

SAN     = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
B      ?= build$(if $(SANITIZE),-san)
WARN    = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	  -Wold-style-definition -Wformat=2 -Wvla -Wundef -Wwrite-strings -Wpointer-arith \
	  $(WERROR)
# Small: as fast as -O2 where it counts (make bench), and a seventh less to read at a start.
CFLAGS ?= -Os -g
# The sanitizers look closer, and do not go together with these.
HARDEN  = $(if $(SANITIZE),,-fstack-protector-strong $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),\
	  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
RELRO   = $(if $(SANITIZE),,-Wl,-z,relro,-z,now)
# A seventh of the program: tables for exceptions, of which C has none; gdb has its own in -g.
LEAN    = $(if $(SANITIZE),,-fno-asynchronous-unwind-tables)
# Relocations as bits: a fifteenth of it, where linker and libc (glibc 2.36, musl 1.2.4) know them.
RELR    = -Wl,-z,pack-relative-relocs
DENSE   = $(if $(SANITIZE),,-Wl,-z,noseparate-code $(shell mkdir -p $(B) && \
	  echo 'int main(void) { return 0; }' | $(CC) $(CFLAGS) $(LDFLAGS) $(RELR) -x c -o $(B)/try - 2>$(B)/try.log && \
	  ! test -s $(B)/try.log && $(B)/try && echo '$(RELR)'))
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE -DGPULEASE_VERSION='"$(VERSION)"' -Ilib -MMD -MP \
	  $(WARN) $(SAN) $(HARDEN) $(LEAN) $(CFLAGS)
ALL_LDFLAGS = $(SAN) $(RELRO) $(CFLAGS) $(LDFLAGS)

LIB_OBJECTS  := $(patsubst %.c,$(B)/o/%.o,$(wildcard lib/*.c))
MAIN_OBJECTS := $(patsubst %.c,$(B)/o/%.o,$(wildcard gpulease/*.c))
UNIT_TESTS   := $(patsubst %.c,$(B)/%,$(wildcard tests/test_*.c))
HELPERS      := $(patsubst %.c,$(B)/o/%.o,$(filter-out tests/test_%.c,$(wildcard tests/*.c)))
TOOLS        := $(patsubst %.c,$(B)/%,$(wildcard tests/tools/*.c))
SIMULATE     := $(B)/tests/simulate
SIMJOB       := $(B)/gpulease-simjob
FUZZERS      := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS      := $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)
CLI_TESTS    := $(filter-out %/lib.sh %_lib.sh %/own_mounts.sh,$(wildcard tests/cli/*.sh))

all: $(B)/gpulease $(SIMJOB)

# --- building -----------------------------------------------------------------------------

$(B)/gpulease: $(B)/o/gpulease/main.o $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

# A job for simulated GPUs; of the command it takes what reads GPULEASE_SIM.
$(SIMJOB): $(B)/o/gpulease/simjob/simjob.o $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

$(B)/libgpulease.a: $(LIB_OBJECTS)
# The command but for main(): the tests of its pure parts take from it what they need.
$(B)/libcommand.a: $(filter-out %/main.o,$(MAIN_OBJECTS))
$(B)/libhelpers.a: $(HELPERS)
$(B)/lib%.a:
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/o/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# A unit test that makes system calls fail names them: WRAP = write openat …
$(B)/tests/test_%: $(B)/o/tests/test_%.o $(B)/libhelpers.a $(B)/libcommand.a $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(WRAP:%=-Wl,--wrap=%) -o $@ $(filter %.o %.a,$^) -lcmocka
-include tests/wrap.mk
$(UNIT_TESTS): $(wildcard tests/wrap.mk)

$(B)/tests/tools/%: $(B)/o/tests/tools/%.o $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -pthread

$(SIMULATE): $(patsubst %.c,$(B)/o/%.o,$(wildcard tests/simulate/*.c)) $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

# Fuzz targets have an LLVMFuzzerTestOneInput; replay.c feeds them files, with any compiler.
$(B)/tests/fuzz/fuzz_%: $(B)/o/tests/fuzz/fuzz_%.o $(B)/o/tests/fuzz/replay.o \
		$(B)/libcommand.a $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^
# The same with libFuzzer, in place of replay.c.
$(B)/tests/fuzz/search_%: $(B)/o/tests/fuzz/fuzz_%.o $(B)/libcommand.a $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^

# All that can be compiled: for other compilers and flags.
everything: all $(UNIT_TESTS) $(TOOLS) $(SIMULATE) $(REPLAYS)

# --- checking -----------------------------------------------------------------------------

# Absolute: tests change their directory.  `make check-cli GPULEASE=…` tests another build.
GPULEASE = $(abspath $(B))/gpulease
ENVIRONMENT = GPULEASE=$(GPULEASE) TOOLS=$(abspath $(B))/tests/tools
RUN   = $(ENVIRONMENT) sh tests/run -j 3 -t 900 $(if $(CHECK_SECONDS),--budget $(CHECK_SECONDS))
SWEEP = $(B)/tests/tools/sweep
TORTURE = $(B)/tests/tools/torture
STORM = $(B)/tests/tools/storm
CORRUPT = $(B)/tests/tools/corrupt
REPLAY_RUNS = $(foreach name,$(FUZZERS), \
	"$(B)/tests/fuzz/fuzz_$(name) tests/fuzz/corpus/$(name)")

# The program itself leaves it to the kernel to take its memory back.
NO_LEAKS = env ASAN_OPTIONS=detect_leaks=0
CLI_RUNS = $(if $(SANITIZE),$(CLI_TESTS:%="$(NO_LEAKS) sh %"),$(CLI_TESTS))
# Every third place; sanitizers make each of them slow.
QUICK_SWEEP = $(if $(SANITIZE),$(NO_LEAKS) )$(SWEEP) --quick --every $(if $(SANITIZE),15,3)

deps:
	@sh tests/deps.sh
deps-extra:
	@sh tests/deps.sh extra

# The longest first.  Most of the time they wait: three at a time keep two cores busy.
check: everything
	@$(RUN) "$(QUICK_SWEEP)" "$(TORTURE) --jobs 150" "$(STORM) --jobs 300" \
		"$(STORM) --plain --jobs 100" $(CORRUPT) $(CLI_RUNS) \
		"$(SIMULATE) --gpus 8" $(UNIT_TESTS) $(REPLAY_RUNS)

check-fast: everything
	@$(RUN) $(CLI_RUNS) $(UNIT_TESTS) $(REPLAY_RUNS)

check-cli: all $(TOOLS)
	@$(RUN) $(CLI_RUNS)

# Tests that only compute, so that valgrind sees all they do.
PURE = text parse gpuset record smiparse options policy estimate render childenv pattern operands
PURE_TESTS = $(filter $(PURE:%=$(B)/tests/test_%),$(UNIT_TESTS))
VALGRIND   = $(if $(shell command -v valgrind),valgrind -q --error-exitcode=9 --leak-check=full)

check-slow: everything
	$(if $(VALGRIND),,@echo "valgrind is not installed: the tests under it are left out")
	@$(RUN) -t 1200 --budget $(SLOW_SECONDS) --rotate $(ROTATE) \
		$(foreach part,alone behind sharer reclaim submit supervisor while, \
			"$(SWEEP) --situation $(part)") \
		"env LOG_RUNS=1000 sh tests/cli/logs.sh" \
		"env BATCH_EVERY=1 sh tests/cli/batch_kill.sh" \
		$(foreach part,alone holder waiter dead lower beside torture, \
			"tests/cli/hardened_sweep.sh $(part)") \
		"$(TORTURE) --clients 200 --jobs 2000" "$(TORTURE) --seconds $(TORTURE_SECONDS)" \
		"$(TORTURE) --seconds $(TORTURE_SECONDS) --shares 95 --gpus 2" \
		"$(TORTURE) --seconds 60 --gpus 1 --crowd --clients 80" \
		"$(TORTURE) --seconds $(TORTURE_SECONDS) --preempt 60 --shares 30 --gpus 3" \
		"$(TORTURE) --seconds 60 --nopidfd enosys" \
		"$(TORTURE) --seconds 60 --nopidfd eperm" \
		$(foreach way,enosys eperm,$(foreach script,$(CLI_TESTS), \
			"$(B)/tests/tools/nopidfd $(way) sh $(script)")) \
		"$(STORM) --jobs 10000" "$(STORM) --plain --jobs 10000" \
		"tests/cli/hardened_sweep.sh storm 10000" "env JOBS=1000 tests/upgrade.sh" \
		"$(SIMULATE)" "$(SIMULATE) --shares" tests/mutants.sh \
		$(if $(VALGRIND),$(foreach test,$(PURE_TESTS),"$(VALGRIND) $(test)"))

bench: everything
	@$(ENVIRONMENT) $(B)/tests/tools/bench

lint: all
	@$(RUN) -j 2 "tests/lint/tools.sh gcc" \
		"tests/lint/tools.sh clang" "tests/lint/tools.sh tidy" \
		"tests/lint/tools.sh cppcheck" "tests/lint/tools.sh format" \
		"tests/lint/tools.sh shellcheck" "tests/lint/tools.sh mandoc" \
		tests/lint/includes.sh tests/lint/docs.sh tests/lint/size.sh

# What it finds of new inputs stays in build-fuzz/corpus, what breaks something in build-fuzz.
fuzz:
	@+$(MAKE) --no-print-directory B=build-fuzz CC=clang \
		SANITIZE=fuzzer-no-link,address,undefined fuzz-run
fuzz-run: $(FUZZERS:%=$(B)/tests/fuzz/search_%)
	@passed=0 failed=0; for name in $(FUZZERS); do \
		mkdir -p $(B)/corpus/$$name; log=$(B)/$$name.log; \
		if $(B)/tests/fuzz/search_$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-print_final_stats=1 -artifact_prefix=$(B)/$$name- \
			$(B)/corpus/$$name tests/fuzz/corpus/$$name >$$log 2>&1; then \
			passed=$$((passed + 1)); \
			echo "ok      $$name: $$(sed -n 's/.*executed_units: *//p' $$log) inputs"; \
		else \
			failed=$$((failed + 1)); echo "FAILED  $$name, see $$log"; tail -n 40 $$log; \
		fi; \
	done; \
	echo "$$passed passed, $$failed failed"; [ $$failed -eq 0 ]

demo: all
	@$(ENVIRONMENT) sh tests/demo.sh

# --- installing ---------------------------------------------------------------------------

SRUN  = $(DESTDIR)$(PREFIX)/lib/gpulease/bin
SETUP = BUILT='$(B)/gpulease' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' MODE='$(MODE)' \
	GROUP='$(GROUP)' sh gpulease/packaging/setup.sh

install: $(B)/gpulease $(SIMJOB)
	@$(SETUP) install

# Not in PREFIX/bin: programs that find an srun there believe that they are inside Slurm.
install-srun:
	@install -d $(SRUN)
	@ln -sfn ../../../bin/gpulease $(SRUN)/srun
	@echo "For who wants it: PATH=$(PREFIX)/lib/gpulease/bin:\$$PATH"

uninstall:
	@$(SETUP) uninstall

# Takes no root: the group and the set-group-ID bit are given to it where it is installed.
deb: $(B)/gpulease $(SIMJOB)
	@BUILT='$(B)/gpulease' VERSION='$(VERSION)' OUT='$(B)' sh gpulease/packaging/deb.sh

dist:
	@mkdir -p $(B)
	git archive --format=tar.gz --prefix=gpulease-$(VERSION)/ \
		-o $(B)/gpulease-$(VERSION).tar.gz HEAD
	@echo $(B)/gpulease-$(VERSION).tar.gz

clean:
	rm -rf build build-*

.PHONY: all everything deps deps-extra check check-fast check-cli check-slow bench lint fuzz fuzz-run \
	demo install install-srun uninstall deb dist clean
.SECONDARY:
.DELETE_ON_ERROR:
# `make -j deps check`: first what is needed, then what needs it.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
-include $(shell find $(B) -name '*.d' 2>/dev/null)

# gpulease: GPU leases on a shared machine.  GNU make; no configure step.
#
#	make                 build/gpulease, and beside it -simjob, -slurm and -view
#	make demo            two jobs that wait for each other, and a status
#	make deps check      install the tools of the tests, run the quick tests (5 minutes)
#	make deps-extra      install Slurm, zsh and fish, which some tests use
#	make check-one T=name    tests/test_name.c and tests/cli/name.sh; with F=text of the first only
#	                     the functions whose names contain the text
#	make check-slow      the long tests: every kill and stop point, torture, mutants.  They end
#	                     after SLOW_SECONDS; ROTATE=N begins with another of them
#	make lint            checks of the source: warnings, format, manuals, layers
#	make fuzz            the fuzz targets, FUZZ_SECONDS each; needs clang
#	make bench           time and memory of gpulease and of similar programs
#	make install         for all users; MODE=lab GROUP=name or MODE=private; PREFIX, DESTDIR
#	make install-srun    symbolic links srun, sbatch, scancel, squeue and scontrol in
#	                     PREFIX/lib/gpulease/bin; OVER_SLURM=yes: also where Slurm is installed
#	make uninstall       removes the files of install and install-srun
#	make deb             a Debian package, in build/
#	make dist            a tar.gz of the last commit and static programs of it, in build/
#
# SANITIZE=address,undefined builds and checks in build-san; B names another directory.
# CHECK_SECONDS=N: skip the tests and lint checks that have not ended after N seconds.
# tests/README.md says how to run and write tests.

PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
VERSION := 0.1

# Not from the environment: tcsh exports the user's own group as GROUP.
MODE  =
GROUP =
OVER_SLURM =
T     =
F     =

FUZZ_SECONDS ?= 30
SLOW_SECONDS ?= 1800
ROTATE ?= 0
TORTURE_SECONDS ?= 120
SCENES_SECONDS ?= 600

SAN     = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
B      ?= build$(if $(SANITIZE),-san)
WARN    = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	  -Wold-style-definition -Wformat=2 -Wvla -Wundef -Wwrite-strings -Wpointer-arith \
	  $(WERROR)
# The smallest program is as fast as one of -O2 in make bench, and a start reads a fifth less from
# disk.  -Oz: gcc 12, clang.
SMALL  := $(shell $(CC) -Oz -E -x c /dev/null >/dev/null 2>&1 && echo -Oz || echo -Os)
CFLAGS ?= $(SMALL) -g
# The sanitizers check more, and cannot be combined with these flags.
HARDEN  = $(if $(SANITIZE),,-fstack-protector-strong $(if $(filter -O1 -O2 -O3 -Os -Oz,$(CFLAGS)),\
	  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
RELRO   = $(if $(SANITIZE),,-Wl,-z,relro,-z,now)
# $(call accepted,FLAGS): the flags if the compiler knows them, else nothing.
accepted = $(shell mkdir -p $(B) && echo 'int main(void) { return 0; }' | \
	  $(CC) -Werror $(1) -x c -o $(B)/try - >/dev/null 2>&1 && echo '$(1)')
# Unwind tables are a seventh of the program; C has no exceptions, and gdb reads those of -g.  The
# linker leaves out the sections of functions that only tests call.  Data is aligned as the ABI
# asks, and not to cache lines.  A value that a loop keeps in a register costs more room than one
# that it computes anew, and so do a value that is saved around a call, a call at the end of a
# function that becomes a jump, and the optimizations that gcc calls expensive.
NARROW := $(call accepted,-malign-data=abi) $(call accepted,-fno-move-loop-invariants) \
	  $(call accepted,-fno-tree-loop-im -fno-caller-saves -fno-optimize-sibling-calls \
	  -fno-expensive-optimizations)
LEAN    = $(if $(SANITIZE),,-fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections $(NARROW))
# A look at the whole program saves a fortieth; the link takes 7 s.  `make LTO=` does without.  Only
# gpulease is linked so: the objects also have ordinary code, for the tests.
LTO    := $(if $(SANITIZE),,$(call accepted,-flto=auto -flto-partition=one -ffat-lto-objects))
# Packed relocations save a fifteenth, if linker and libc (glibc 2.36, musl 1.2.4) support them.
RELR    = -Wl,-z,pack-relative-relocs
DENSE   = $(if $(SANITIZE),,-Wl,-z,noseparate-code,--gc-sections $(shell mkdir -p $(B) && \
	  echo 'int main(void) { return 0; }' | $(CC) $(CFLAGS) $(LDFLAGS) $(RELR) -x c -o $(B)/try - 2>$(B)/try.log && \
	  ! test -s $(B)/try.log && $(B)/try && echo '$(RELR)'))
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE -DGPULEASE_VERSION='"$(VERSION)"' $(INCLUDES) -MMD -MP \
	  $(WARN) $(SAN) $(HARDEN) $(LEAN) $(WHOLE) $(CFLAGS)
ALL_LDFLAGS = $(SAN) $(RELRO) $(LINK) $(CFLAGS) $(LDFLAGS)
LINK        = $(if $(LTO),-fno-lto)

# Each folder is a layer (lib/README.md).  Headers are included without the name of the folder.
LIB_FOLDERS  := $(patsubst %/,%,$(sort $(dir $(wildcard lib/*/*.c))))
MAIN_FOLDERS := gpulease $(filter-out %/simjob %/slurm %/view %/engine,$(patsubst %/,%,$(sort $(dir $(wildcard gpulease/*/*.c)))))
INCLUDES     := $(LIB_FOLDERS:%=-I%) $(MAIN_FOLDERS:%=-I%)
LIB_OBJECTS  := $(patsubst %.c,$(B)/o/%.o,$(wildcard $(LIB_FOLDERS:%=%/*.c)))
MAIN_OBJECTS := $(patsubst %.c,$(B)/o/%.o,$(wildcard $(MAIN_FOLDERS:%=%/*.c)))
# gpulease prints no help, and no message about a command line that it cannot read: it has these
# modules without the texts, which gpulease-view has (cli/no_messages.h).
BARE         := $(patsubst %,$(B)/o/gpulease/%_bare.o,batch/batch_attributes \
	  $(addprefix cli/,option_table command_line option_parser option_conflicts gpu_options task_options \
	  verb_operands) job/missing_program)
$(LIB_OBJECTS) $(MAIN_OBJECTS) $(BARE): WHOLE = $(LTO)
$(LIB_OBJECTS): INCLUDES := $(LIB_FOLDERS:%=-I%)
# The parts of gpulease-slurm, gpulease-view and gpulease-engine, without their main(), for the unit tests.
SLURM_PARTS  := $(patsubst %.c,$(B)/o/%.o,$(filter-out %_main.c,$(wildcard gpulease/slurm/*.c)))
VIEW_PARTS   := $(patsubst %.c,$(B)/o/%.o,$(filter-out %_main.c,$(wildcard gpulease/view/*.c)))
ENGINE_PARTS := $(patsubst %.c,$(B)/o/%.o,$(filter-out %_main.c,$(wildcard gpulease/engine/*.c)))
$(SLURM_PARTS): INCLUDES += -Igpulease/slurm
$(VIEW_PARTS): INCLUDES += -Igpulease/view
$(ENGINE_PARTS) $(B)/o/gpulease/engine/engine_main.o: INCLUDES += -Igpulease/slurm -Igpulease/engine
$(B)/o/tests/%.o: INCLUDES += -Igpulease/slurm -Igpulease/view -Igpulease/engine
UNIT_TESTS   := $(patsubst %.c,$(B)/%,$(wildcard tests/test_*.c))
TEST_FILTER  := $(B)/o/tests/filter.o
HELPERS      := $(patsubst %.c,$(B)/o/%.o,$(filter-out tests/test_%.c tests/filter.c,$(wildcard tests/*.c)))
TOOLS        := $(patsubst %.c,$(B)/%,$(wildcard tests/tools/*.c))
SIMULATE     := $(B)/tests/simulate
SIMJOB       := $(B)/gpulease-simjob
SLURM        := $(B)/gpulease-slurm
VIEW         := $(B)/gpulease-view
ENGINE       := $(B)/gpulease-engine
FUZZERS      := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS      := $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)
CLI_TESTS    := $(filter-out %/lib.sh %_lib.sh %/own_mounts.sh,$(wildcard tests/cli/*.sh))

all: $(B)/gpulease $(SIMJOB) $(SLURM) $(VIEW) $(ENGINE)

# --- building -----------------------------------------------------------------------------

$(B)/gpulease: LINK = $(HARDEN) $(LEAN) $(LTO)
# The tables come before the library, so that the linker does not look for them there.
$(B)/gpulease: $(B)/o/gpulease/main.o $(BARE) $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

# A job for simulated GPUs.  It shares with the command what reads GPULEASE_SIM.
$(SIMJOB): $(B)/o/gpulease/simjob/simjob.o $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

# Executed by gpulease, which has then given up its group.
$(SLURM): $(B)/o/gpulease/slurm/slurm_main.o $(B)/libslurm.a $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

$(VIEW): $(B)/o/gpulease/view/view_main.o $(B)/libview.a $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

$(ENGINE): $(B)/o/gpulease/engine/engine_main.o $(B)/libengine.a $(B)/libslurm.a $(B)/libcommand.a $(B)/libgpulease.a
	$(CC) $(ALL_LDFLAGS) $(DENSE) -o $@ $^

$(B)/libengine.a: $(ENGINE_PARTS)
$(B)/libslurm.a: $(SLURM_PARTS)
$(B)/libview.a: $(VIEW_PARTS)
$(B)/libgpulease.a: $(LIB_OBJECTS)
# The command without main(), for the unit tests.
$(B)/libcommand.a: $(filter-out %/main.o,$(MAIN_OBJECTS))
$(B)/libhelpers.a: $(HELPERS)
# ar(1) silently replaces a member of the same name, so names must be unique.
$(B)/lib%.a:
	$(if $(filter-out $(words $^),$(words $(sort $(notdir $^)))),$(error two files of $@ have the same name))
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/o/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(B)/o/%_bare.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DWITHOUT_HELP -c -o $@ $<

# WRAP names the functions that a unit test replaces, to make system calls fail.
$(B)/tests/test_%: $(B)/o/tests/test_%.o $(TEST_FILTER) $(B)/libhelpers.a $(B)/libengine.a $(B)/libslurm.a $(B)/libview.a $(B)/libcommand.a $(B)/libgpulease.a
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
		$(B)/libengine.a $(B)/libslurm.a $(B)/libview.a $(B)/libcommand.a $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^
# A fuzz target with libFuzzer instead of replay.c.
$(B)/tests/fuzz/search_%: $(B)/o/tests/fuzz/fuzz_%.o $(B)/libengine.a $(B)/libslurm.a $(B)/libview.a \
		$(B)/libcommand.a $(B)/libgpulease.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^

# The unit tests need cmocka.  `make deps check` may install it just before this rule runs, so the
# recipe looks for it, not the list of prerequisites.
CMOCKA = $(shell printf '\043include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h | \
	  $(CC) $(CFLAGS) -E -x c - >/dev/null 2>&1 && echo yes)
unit-tests: all
	@$(if $(CMOCKA),$(MAKE) --no-print-directory $(UNIT_TESTS),\
		echo 'The unit tests are not built: cmocka.h is missing.')

# Everything that can be compiled.
everything: all unit-tests $(TOOLS) $(SIMULATE) $(REPLAYS)

# --- checking -----------------------------------------------------------------------------

# Absolute, because tests change their directory; without $(abspath), which splits a path at a blank.
# `make check-cli GPULEASE=…` tests another build.
BUILT    = $(if $(filter /%,$(firstword $(B))),,$(CURDIR)/)$(B)
GPULEASE = $(BUILT)/gpulease
ENVIRONMENT = GPULEASE='$(GPULEASE)' TOOLS='$(BUILT)/tests/tools'
RUN   = $(ENVIRONMENT) sh tests/run -j $(if $(SANITIZE),4,6) -t 900 $(if $(CHECK_SECONDS),--budget $(CHECK_SECONDS))
SWEEP = $(B)/tests/tools/sweep
TORTURE = $(B)/tests/tools/torture
STORM = $(B)/tests/tools/storm
CORRUPT = $(B)/tests/tools/corrupt
PYTHON3 := $(shell command -v python3)
SCENES = $(if $(SANITIZE),$(NO_LEAKS) )tests/tools/scenes.py
REPLAY_RUNS = $(foreach name,$(FUZZERS), \
	"$(B)/tests/fuzz/fuzz_$(name) tests/fuzz/corpus/$(name)")

# The program does not free its memory before it exits.
NO_LEAKS = env ASAN_OPTIONS=detect_leaks=0
CLI_RUNS = $(if $(SANITIZE),$(CLI_TESTS:%="$(NO_LEAKS) sh %"),$(CLI_TESTS))
UNIT_RUNS = $(if $(CMOCKA),$(UNIT_TESTS),"tests/no_cmocka.sh $(notdir $(UNIT_TESTS))")
# Every third system call; with sanitizers, which are slow, every fifteenth.
QUICK_SWEEP = $(if $(SANITIZE),$(NO_LEAKS) )$(SWEEP) --quick --every $(if $(SANITIZE),15,3)

deps:
	@sh tests/deps.sh
deps-extra:
	@sh tests/deps.sh extra

# The longest tests come first.  Tests mostly wait, so six at a time keep two cores busy.
check: everything
	@$(RUN) "$(QUICK_SWEEP)" "$(TORTURE) --jobs 150" "$(STORM) --jobs 300" \
		"$(STORM) --plain --jobs 100" $(CORRUPT) $(if $(PYTHON3),"$(SCENES) --seed 1 --scenes 10") $(CLI_RUNS) \
		"$(SIMULATE) --gpus 8" $(UNIT_RUNS) $(REPLAY_RUNS)

check-fast: everything
	@$(RUN) $(CLI_RUNS) $(UNIT_RUNS) $(REPLAY_RUNS)

check-cli: all $(TOOLS)
	@$(RUN) $(CLI_RUNS)

# T has one or more names.  Each is a script, a unit test, or both.
ONE_CLI  = $(foreach name,$(T),$(wildcard tests/cli/$(name).sh))
ONE_UNIT = $(foreach name,$(T),$(patsubst %.c,$(B)/%,$(wildcard tests/test_$(name).c)))
ONE_NOT  = $(strip $(foreach name,$(T),$(if $(wildcard tests/cli/$(name).sh tests/test_$(name).c),,$(name))))
check-one: $(if $(ONE_CLI),all $(TOOLS)) $(ONE_UNIT)
	@$(if $(T),,$(error usage: make check-one T=ordering))
	@$(if $(ONE_NOT),$(error there is no tests/test_$(firstword $(ONE_NOT)).c \
		and no tests/cli/$(firstword $(ONE_NOT)).sh))
	@$(if $(F),$(if $(strip $(ONE_UNIT)),,$(error F= chooses functions of a unit test; there is none)))
	@$(if $(F),GPULEASE_TEST_FILTER='$(F)') $(RUN) -v $(ONE_UNIT) $(if $(F),,$(if $(SANITIZE),\
		$(ONE_CLI:%="$(NO_LEAKS) sh %"),$(ONE_CLI)))

# Tests that only compute.  valgrind cannot follow the others into their child processes.
PURE = text hex parse gpuset record json_read smiparse options policy estimate render childenv
PURE_TESTS = $(filter $(PURE:%=$(B)/tests/test_%),$(UNIT_TESTS))
VALGRIND   = $(if $(shell command -v valgrind),valgrind -q --error-exitcode=9 --leak-check=full)

check-slow: everything
	$(if $(VALGRIND),,@echo "valgrind is not installed: the tests under it are left out")
	@$(RUN) -j 3 -t 1200 --budget $(SLOW_SECONDS) --rotate $(ROTATE) \
		$(foreach part,alone behind sharer reclaim submit supervisor while, \
			"$(SWEEP) --situation $(part)") \
		"env LOG_RUNS=1000 sh tests/cli/logs.sh" \
		"env BATCH_EVERY=1 sh tests/cli/batch_kill.sh" \
		"env COMPARE=real sh tests/cli/compare_slurm.sh" \
		"env ENGINE_MINUTE=yes sh tests/cli/engine_run.sh" \
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
		$(if $(PYTHON3),"$(SCENES) --seconds $(SCENES_SECONDS)") \
		"tests/cli/hardened_sweep.sh storm 10000" "env JOBS=1000 tests/upgrade.sh" \
		"$(SIMULATE)" "$(SIMULATE) --shares" tests/mutants.sh \
		$(if $(CMOCKA),$(if $(VALGRIND),$(foreach test,$(PURE_TESTS),"$(VALGRIND) $(test)")))

bench: everything
	@$(ENVIRONMENT) $(B)/tests/tools/bench

lint: all
	@$(RUN) -j 2 "tests/lint/tools.sh gcc" \
		"tests/lint/tools.sh clang" "tests/lint/tools.sh tidy" \
		"tests/lint/tools.sh cppcheck" "tests/lint/tools.sh format" \
		"tests/lint/tools.sh shellcheck" "tests/lint/tools.sh mandoc" \
		tests/lint/includes.sh tests/lint/docs.sh tests/lint/size.sh \
		"tests/mutants.sh --check"

# New inputs stay in build-fuzz/corpus; an input that breaks something stays in build-fuzz.
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

SETUP = BUILT='$(B)/gpulease' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' MODE='$(MODE)' \
	GROUP='$(GROUP)' sh gpulease/packaging/setup.sh

install: all
	@$(SETUP) install

# Not in PREFIX/bin: programs that find srun in PATH believe that they run inside Slurm.
install-srun:
	@OVER_SLURM='$(OVER_SLURM)' $(SETUP) install-srun

uninstall:
	@$(SETUP) uninstall

# Needs no root: the installation of the package sets the group and the set-group-ID bit.
deb: all
	@BUILT='$(B)/gpulease' VERSION='$(VERSION)' OUT='$(B)' CC='$(CC)' sh gpulease/packaging/deb.sh

dist:
	@VERSION='$(VERSION)' OUT='$(B)' sh gpulease/packaging/dist.sh

clean:
	rm -rf build build-*

.PHONY: all unit-tests everything deps deps-extra check check-fast check-cli check-one check-slow bench lint fuzz fuzz-run \
	demo install install-srun uninstall deb dist clean
.SECONDARY:
.DELETE_ON_ERROR:
# `make -j deps check` must not run both at the same time.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
-include $(shell find $(B) -name '*.d' 2>/dev/null)

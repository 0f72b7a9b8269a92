#!/bin/sh
# Installs what tests, lint and bench use beside a compiler, make and git; gpulease itself
# needs nothing but libc.  Where it cannot install it says what it would do.
#
#	tests/deps.sh		that
#	tests/deps.sh arm64	what builds gpulease for arm64, and runs it elsewhere
#	tests/deps.sh extra	what tests use that most machines can do without: Slurm,
#				zsh, fish, sshd, the parsers of Prometheus

set -u

# what is needed: a file or a program, and the package that has it
needs='
	/usr/include/cmocka.h:libcmocka-dev
	clang:clang
	clang-format:clang-format
	clang-tidy:clang-tidy
	cppcheck:cppcheck
	ctags:universal-ctags
	valgrind:valgrind
	shellcheck:shellcheck
	mandoc:mandoc
	lintian:lintian
	musl-gcc:musl-tools
	nq:nq
	tsp:task-spooler
	sem:parallel
	strace:strace
	tmux:tmux
	screen:screen
	python3:python3
	xargs:findutils'
[ "${1-}" != arm64 ] || needs='
	aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu
	/usr/aarch64-linux-gnu/lib/libc.a:libc6-dev-arm64-cross
	qemu-aarch64-static:qemu-user-static'

[ "${1-}" != extra ] || needs='
	slurmctld:slurmctld
	slurmd:slurmd
	slurmdbd:slurmdbd
	mariadbd:mariadb-server
	srun:slurm-client
	munged:munge
	/usr/sbin/slurmdbd:slurmdbd
	/usr/sbin/mariadbd:mariadb-server
	promtool:prometheus
	/usr/lib/python3/dist-packages/prometheus_client:python3-prometheus-client
	/usr/lib/python3/dist-packages/pyte/screens.py:python3-pyte
	zsh:zsh
	fish:fish
	/usr/sbin/sshd:openssh-server
	ssh:openssh-client
	xmllint:libxml2-utils
	chromium:chromium'

is_there() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# The sanitizers of clang have a package of their own, named after its version.
fuzzer_package() {
	command -v clang >/dev/null 2>&1 || return 0
	version=$(clang -dumpversion | cut -d . -f 1)
	# only the libraries themselves tell whether it is there
	resources=$(clang -print-resource-dir)
	[ -n "$(find "$resources/lib" -name 'libclang_rt.fuzzer*' 2>/dev/null | head -n 1)" ] ||
		echo "libclang-rt-$version-dev"
}

missing() {
	for need in $needs; do
		is_there "${need%%:*}" || echo "${need#*:}"
	done
	fuzzer_package
}

# install PACKAGE…: whether all of them could be installed
install() {
	DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq -o DPkg::Lock::Timeout=120 \
		--no-install-recommends "$@" </dev/null >/dev/null 2>&1
}

packages=$(missing | sort -u | tr '\n' ' ')
if [ -z "$packages" ]; then
	echo "deps: all there"
	exit 0
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root='sudo -n'
if ! command -v apt-get >/dev/null 2>&1; then
	echo "deps: no apt-get here; by hand, what your system calls: $packages"
	exit 0
fi
if [ -n "$as_root" ] && ! $as_root true 2>/dev/null; then
	echo "deps: not root and no sudo without a password; would run:"
	echo "deps: apt-get install $packages"
	exit 0
fi
echo "deps: installs $packages"
$as_root apt-get update -qq </dev/null >/dev/null 2>&1
# shellcheck disable=SC2086 # a list
if ! install $packages; then
	for package in $packages; do # one that does not exist here does not keep the others
		install "$package" || echo "deps: $package cannot be installed"
	done
fi
# clang may be there only now
package=$(fuzzer_package)
[ -z "$package" ] || install "$package" || echo "deps: $package cannot be installed"
still=$(missing | sort -u | tr '\n' ' ')
[ -z "$still" ] || echo "deps: left out: $still"
# Without cmocka there are no unit tests; all else is skipped and counted.
[ -e /usr/include/cmocka.h ] || echo "deps: without libcmocka-dev the tests cannot be built"

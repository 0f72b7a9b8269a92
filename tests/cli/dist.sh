#!/bin/sh
# make dist: an archive of the last commit, and static programs of it.  The compiler is a stand-in
# that notes how it is called; CI runs the real one.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
# shellcheck source=tests/cli/install_lib.sh
. "$CLI/install_lib.sh"

at_source "$@"
for tool in make git tar strip; do
	command -v "$tool" >/dev/null 2>&1 && continue
	skip 'make dist' "$tool is not installed"
	finish
done
if ! git rev-parse HEAD >/dev/null 2>&1; then
	skip 'make dist' 'this is no repository of this user'
	finish
fi

# dist COMPILER: makes both
dist() {
	MUSL_CC=$1 make -s --no-print-directory "B=$S/dist" VERSION=1.0 dist
}

run 'without musl-gcc make dist says that there is no static program' 0 \
	"$S/dist/gpulease-1.0.tar.gz" 'gpulease: no static program: *nosuch*' dist "$S/nosuch"
is 'the archive has the files of the last commit' \
	[ "$(tar -tzf "$S/dist/gpulease-1.0.tar.gz" | grep -v '/$' | sort)" = "$(
		git ls-tree -r --name-only HEAD | sed 's|^|gpulease-1.0/|' | sort)" ]

program=$(realpath "$build/gpulease")
cat >"$S/cc" <<END
#!/bin/sh
echo "\$*" >>"$S/calls"
[ "\$1" != -dumpmachine ] || echo cpu-linux-musl
while [ \$# -gt 0 ]; do
	case \$1 in
	-c) compiles=yes ;;
	-o) out=\$2 ;;
	esac
	shift
done
[ -z "\${out-}" ] || if [ "\${compiles-}" ]; then
	: >"\$out"
else
	# make executes another one, which tells whether a flag works
	case \$out in
	*/gpulease) cp "$program" "\$out" ;;
	*) cp /bin/true "\$out" ;;
	esac
fi
END
chmod +x "$S/cc"
run 'make dist names the archive and the static programs' 0 "$S/dist/gpulease-1.0.tar.gz
$S/dist/gpulease-view-1.0-linux-cpu
$S/dist/gpulease-engine-1.0-linux-cpu
$S/dist/gpulease-1.0-linux-cpu" '*' dist "$S/cc"
for part in gpulease gpulease-view gpulease-engine; do
	is "the static $part is linked statically" grep -q -- "-static.* -o build/$part " "$S/calls"
done
is 'the static program has no symbols' \
	[ "$(stat -c %s "$S/dist/gpulease-1.0-linux-cpu")" -lt "$(stat -c %s "$build/gpulease")" ]
run 'the static program runs' 0 'gpulease *' '' "$S/dist/gpulease-1.0-linux-cpu" --version
finish

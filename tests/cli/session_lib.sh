# shellcheck shell=sh disable=SC2034,SC2154
# Functions of the tests of --screen.  Source this file after lib.sh and `scratch`.
#
#	$program	tmux or screen, after `only`
#	$S/bin		a PATH with this one of the two

: "${S:?scratch sets it}"
export TERM=xterm-256color
# servers of the test's own, apart from the sessions of the user who runs it
export TMUX_TMPDIR="$S/tmux-dir" SCREENDIR="$S/screen-dir"
mkdir -m 0700 "$TMUX_TMPDIR" "$SCREENDIR"
unset TMUX STY XDG_RUNTIME_DIR
# tmux hands a command line to the user's shell, and that of "nobody" refuses all
export SHELL=/bin/sh

end_sessions() {
	tmux kill-server
	screen -ls | sed -n 's/^[[:space:]]*\([0-9]*\)\..*/\1/p' | xargs -r kill
} >/dev/null 2>&1
at_exit end_sessions

# only PROGRAM: from now on $S/bin has this one of tmux and screen
only() {
	program=$1
	rm -rf "${S:?}/bin"
	mkdir "$S/bin"
	for only_program in "$1" sh cat sed mkfifo mv tty env seq stty sleep mkdir rmdir; do
		! command -v "$only_program" >/dev/null 2>&1 ||
			ln -s "$(command -v "$only_program")" "$S/bin/$only_program"
	done
}

# names: the names of the sessions
names() {
	PATH=$S/bin "$GPULEASE" --sessions | grep -o 'gpulease-[^ ]*' | sort
}

# type_in NAME TEXT: types it and the return key in the session of this name
type_in() {
	case $program in
	tmux) tmux send-keys -t "=$1:" "$2" Enter ;;
	screen) screen -S "$1" -p 0 -X stuff "$2$(printf '\r')" ;;
	esac
}

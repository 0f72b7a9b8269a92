#!/bin/sh
# --cancel of several jobs: `mine`, `all`, a name, a range; and its question on a terminal.
# shellcheck disable=SC2016 # texts for other shells

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2

# job NAME: a background job, which waits or runs; sets $id
job() {
	id=$("$GPULEASE" --submit --name "$1" sleep 1000) || bail "no job $1"
}

# live: the ids of the jobs that wait or run, in one line
live() {
	"$GPULEASE" --status --json | sed -n 's/^ *"ticket": \([0-9][0-9]*\),*$/\1/p' | sort -nu |
		paste -sd ' ' -
}

# four: the jobs $a, $b, $c and $d; two wait
four() {
	job train
	a=$id
	job train
	b=$id
	job eval
	c=$id
	job 12x
	d=$id
}

# others_job: prints the id of a job of another user
others_job() {
	# shellcheck disable=SC2086 # words
	(cd "$S/home" && HOME=$S/home XDG_STATE_HOME=$S/home $other "$GPULEASE" --submit \
		--name train -n 0 sleep 1000)
}

# --- without a terminal ----------------------------------------------------------------------

four
run 'a name cancels each job of that name' 0 '' 'gpulease: cancelled 2 jobs' \
	"$GPULEASE" --cancel train
is 'jobs of other names live on' [ "$(live)" = "$c $d" ]
run 'a name may look like the beginning of a number' 0 '' 'gpulease: cancelled 1 job' \
	"$GPULEASE" --cancel 12x
run 'a name that no job has is reported' 1 '' \
	"gpulease: no job* named 'train' waits or runs; --queue and --status show the jobs" \
	"$GPULEASE" --cancel train
job 3-
run 'a name may look like half a range' 0 '' 'gpulease: cancelled 1 job' "$GPULEASE" --cancel 3-
for each in 3- 1-2-3 3:4; do
	run "what no id looks like is refused as one: $each" 1 '' \
		"gpulease: no job* named '$each' waits or runs; an id is written 12, a range 3-12" \
		"$GPULEASE" --cancel "$each"
done
run 'a word that chooses nothing does not keep the others from it' 1 '' \
	"gpulease: no job* named 'none' waits or runs;*
gpulease: cancelled 1 job" "$GPULEASE" --cancel "none,eval"
run 'mine with no job is reported' 1 '' 'gpulease: no job of yours waits or runs' \
	"$GPULEASE" --cancel mine

four
run 'a range cancels the jobs in it' 0 '' 'gpulease: cancelled 2 jobs' \
	"$GPULEASE" --cancel "$b-$c"
is 'jobs outside the range live on' [ "$(live)" = "$a $d" ]
run 'a range skips jobs that have ended and ids of no job' 0 '' 'gpulease: cancelled 2 jobs' \
	"$GPULEASE" --cancel "1-$((d + 1000))"
run 'a range without a job that lives is reported' 1 '' \
	"gpulease: no job* from $a to $d waits or runs" "$GPULEASE" --cancel "$a-$d"
run 'a range the wrong way round is refused' 125 '' \
	"gpulease: --cancel: '9-3' is the wrong way round; write 3-9" "$GPULEASE" --cancel 9-3

four
run 'a job that is named twice is counted once' 0 '' 'gpulease: cancelled 3 jobs' \
	"$GPULEASE" --cancel "$a" mine train "$b-$d"
is 'mine cancels all of them' [ -z "$(live)" ]
four
run '-Q does not say how many' 0 '' '' sh -c 'yes n | "$1" -Q --cancel mine' sh "$GPULEASE"
is 'no question is asked of a pipe' [ -z "$(live)" ]

job mine
job other
run 'mine is a word, not a name' 0 '' 'gpulease: cancelled 2 jobs' "$GPULEASE" --cancel mine
job 7
seven=$id
job other
run 'a number is an id, not a name' 0 '' '' "$GPULEASE" --cancel "$id"
is 'a job with a number as its name lives on' [ "$(live)" = "$seven" ]
run 'a job with a number as its name is cancelled by its id' 0 '' '' \
	"$GPULEASE" --cancel "$seven"

# --- on a terminal ---------------------------------------------------------------------------

four
run 'n cancels nothing' 0 '' '' "$TOOLS/jobcontrol" \
	"see:gpulease: cancel 4 jobs ($a train, $b train, $c eval, $d 12x)? [y/N] " \
	'type:n^J' 'see:gpulease: cancelled nothing' end:1 -- "$GPULEASE" --cancel mine
for answer in '^J' '^D' 'no^J' '1^J'; do
	run "$answer cancels nothing" 0 '' '' "$TOOLS/jobcontrol" 'see:[y/N]' "type:$answer" \
		'see:gpulease: cancelled nothing' end:1 -- "$GPULEASE" --cancel mine
done
run 'Ctrl-C cancels nothing' 0 '' '' "$TOOLS/jobcontrol" 'see:[y/N]' 'type:^C' end:INT \
	-- "$GPULEASE" --cancel mine
is 'all jobs live on' [ "$(live)" = "$a $b $c $d" ]
run 'y cancels them' 0 '' '' "$TOOLS/jobcontrol" 'see:cancel 2 jobs (' 'type:y^J' \
	'see:gpulease: cancelled 2 jobs' end:0 -- "$GPULEASE" --cancel train
job train
job train
run 'the shell does not get the rest of the answer' 0 '' '' "$TOOLS/jobcontrol" 'see:[y/N]' \
	'type:yes^J' 'see:gpulease: cancelled 2 jobs' 'type:next^J' 'see:read: next.' end:0 \
	-- sh -c '"$1" --cancel train; read -r word; echo "read: $word."' sh "$GPULEASE"
run 'one job needs no question' 0 '' '' "$TOOLS/jobcontrol" 'see:gpulease: cancelled 1 job' \
	end:0 'count:0:[y/N]' -- "$GPULEASE" --cancel eval
job train
run '--yes needs no question' 0 '' '' "$TOOLS/jobcontrol" 'see:gpulease: cancelled 2 jobs' \
	end:0 'count:0:[y/N]' -- "$GPULEASE" --cancel mine --yes
four
run 'ids need no question' 0 '' '' "$TOOLS/jobcontrol" end:0 'count:0:[y/N]' \
	-- "$GPULEASE" --cancel "$a,$b" "$c" "$d"
is 'the jobs that were named by id are cancelled' [ -z "$(live)" ]

four
run 'no question if stderr is no terminal' 0 '' '' "$TOOLS/jobcontrol" end:0 'count:0:[y/N]' \
	-- sh -c '"$1" --cancel "$2-$3" 2>"$4"' sh "$GPULEASE" "$a" "$b" "$S/many.err"
a=$("$GPULEASE" --submit sleep 600) b=$("$GPULEASE" --submit sleep 600)
run 'jobs without names are asked for by their ids' 0 '' '' "$TOOLS/jobcontrol" \
	"see:$a, $b" 'type:y^J' end:0 -- "$GPULEASE" --cancel "$a-$b"
run 'no question if stdin is no terminal' 0 '' '' "$TOOLS/jobcontrol" \
	'see:gpulease: cancelled 2 jobs' end:0 'count:0:[y/N]' \
	-- sh -c 'echo n | "$1" --cancel mine' sh "$GPULEASE"

# --- the rights of the user --------------------------------------------------------------------

if [ "$(id -u)" -ne 0 ]; then
	run 'all is for root' 1 '' \
		'gpulease: only root may cancel the jobs of all users; --cancel mine cancels yours' \
		"$GPULEASE" --cancel all
	skip 'the jobs of other users' 'not root'
elif ! others_can_run; then
	skip 'the jobs of other users' "$others_why"
else
	with_driver
	fresh
	umask 002
	chgrp 65534 "$GPULEASE_DIR"
	chmod 2770 "$GPULEASE_DIR"
	chmod 0777 "$FAKE_SMI_DIR"
	mkdir -m 0777 "$S/home"
	other='setpriv --reuid=65534 --regid=65534 --clear-groups'
	job train
	a=$id
	b=$(others_job)
	is 'another user has a job' [ "$b" ]
	for words in train mine "$a-999"; do
		# shellcheck disable=SC2086 # words
		run "$words leaves the jobs of others alone" 0 '' 'gpulease: cancelled 1 job' \
			$other "$GPULEASE" --cancel "$words"
		is "the job of root lives on after $words" like "*$a*" "$(live)"
		b=$(others_job)
	done
	# shellcheck disable=SC2086 # words
	run 'all is for root' 1 '' \
		'gpulease: only root may cancel the jobs of all users; --cancel mine cancels yours' \
		$other "$GPULEASE" --cancel all
	run 'mine of root leaves the jobs of others alone' 0 '' 'gpulease: cancelled 1 job' \
		"$GPULEASE" --cancel mine
	is 'the job of the other user lives on' like "*$b*" "$(live)"
	job train
	run 'the question names the users' 0 '' '' "$TOOLS/jobcontrol" \
		'see:cancel 2 jobs (' "see:$b train of " 'type:y^J' end:0 \
		-- "$GPULEASE" --cancel all
	is 'root cancels the jobs of all users' [ -z "$(live)" ]
fi
finish

#!/bin/sh
# Mutation proof: takes one safeguard at a time out of a copy of the source; the tests that
# are named with it have to fail.  TAP on stdout: `ok` says that the mutant was caught.
# NAME is tests/test_NAME.c, NAME.sh is tests/cli/NAME.sh with the whole program.
#
#	tests/mutants.sh [NAME…]	all of them, or those named
#	tests/mutants.sh --check	builds and runs nothing; whether each text and each test is there
#
# A change is a text that has to occur exactly once in lib/ and gpulease/, and what takes its
# place.  Line breaks, white space and comments in the source do not count, see tests/mutate.pl.
# Where the text is not found (any more) the script stops: a safeguard that has moved is to be
# found again, not passed by.

set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 125
work=$(mktemp -d "${TMPDIR:-/tmp}/gpulease-mutants.XXXXXX") || exit 125
chmod 0711 "$work" # some scripts go on as another user
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

copy=$work/copy
is_check=''
if [ "${1-}" = --check ]; then
	is_check=1
	shift
fi
chosen=" $* "
number=0 missed=0 sound=' '

bail() {
	echo "Bail out! $*"
	exit 125
}

# Copies the source that tests are built of.
copy_source() {
	mkdir -p "$copy/tests" || return
	cp -R "$top/lib" "$top/gpulease" "$top/Makefile" "$copy" &&
		cp -R "$top/tests/cli" "$top/tests/bin" "$top/tests/tools" "$copy/tests" &&
		cp "$top"/tests/*.c "$top"/tests/*.h "$top/tests/wrap.mk" "$copy/tests" &&
		cp -R "$copy/lib" "$copy/gpulease" "$work"
}

# What scripts need beside the program.
tools=
for each in attack closing fakesmi forge jobcontrol jsoncheck nopidfd onterminal sysfault \
	tellend; do
	tools="$tools b/tests/tools/$each"
done

# build TEST…: builds them in the copy.
build() {
	targets=
	for test in "$@"; do
		case $test in
		*.sh) targets="$targets b/gpulease b/gpulease-simjob b/gpulease-slurm b/gpulease-view \
			b/gpulease-engine $tools" ;;
		*) targets="$targets b/tests/test_$test" ;;
		esac
	done
	# shellcheck disable=SC2086 # one word each
	make -C "$copy" -s B=b SANITIZE= LTO= CFLAGS=-O1 WERROR= $targets >"$work/log" 2>&1
}

# A script has failed with its first bad result, however long the others would wait.
script_passes() {
	(cd "$copy" && exec timeout -k 5 60 env DEADLINE=15 GPULEASE="$copy/b/gpulease" \
		TOOLS="$copy/b/tests/tools" sh "tests/cli/$1") >"$work/out" 2>&1 </dev/null &
	while kill -0 $! 2>/dev/null; do
		grep -q '^not ok' "$work/out" && kill -TERM $! 2>/dev/null
		sleep 0.2
	done
	wait $!
}

# passes TEST: whether it does, in a minute.
passes() {
	case $1 in
	*.sh) script_passes "$1" ;;
	*) (cd "$copy" && timeout -k 5 60 "b/tests/test_$1") >"$work/out" 2>&1 </dev/null ;;
	esac
}

# change OLD NEW: replaces the only occurrence of OLD by NEW, and remembers the file.
change() {
	if file=$(perl "$top/tests/mutate.pl" "$copy" "$1" "$2" 2>"$work/why"); then
		changed="$changed $file"
		return
	fi
	[ -n "$is_check" ] || bail "$name: $(cat "$work/why")"
	wrong="$wrong$(cat "$work/why")
"
}

restore() {
	for file in $changed; do
		cat "$work/$file" >"$copy/$file"
	done
	changed=
}

# A test that fails anyway proves nothing: the first time that one of $tests is needed.
check_sound() {
	for test in $tests; do
		case $sound in
		*" $test "*) continue ;;
		esac
		build "$test" || {
			sed 's/^/# /' "$work/log"
			bail "the source does not build"
		}
		passes "$test" || {
			sed 's/^/# /' "$work/out"
			bail "$test fails without any mutant"
		}
		sound="$sound$test "
	done
}

# mutant NAME TEST… [-- OLD NEW]…: each TEST has to fail once all is changed.
mutant() {
	name=$1 tests='' changed=''
	shift
	while [ "$1" != -- ]; do
		tests="$tests $1"
		shift
	done
	case $chosen in
	"  " | *" $name "*) ;;
	*) return ;;
	esac
	[ -n "$is_check" ] || check_sound
	wrong=''
	while [ $# -gt 0 ]; do
		change "$2" "$3"
		shift 3
	done
	if [ -n "$is_check" ]; then
		judge_texts
	else
		judge
	fi
	restore
}

# check: whether all that the mutant names is there
judge_texts() {
	for test in $tests; do
		case $test in
		*.sh) file=tests/cli/$test ;;
		*) file=tests/test_$test.c ;;
		esac
		[ -e "$top/$file" ] || wrong="${wrong}there is no $file
"
	done
	number=$((number + 1))
	if [ -z "$wrong" ]; then
		echo "ok $number - $name"
	else
		missed=$((missed + 1))
		echo "not ok $number - $name"
		printf '%s' "$wrong" | sed 's/^/# /'
	fi
}

judge() {
	# shellcheck disable=SC2086 # one word each
	build $tests || {
		sed 's/^/# /' "$work/log"
		bail "$name: the mutant does not build"
	}
	for test in $tests; do
		number=$((number + 1))
		if ! passes "$test"; then
			echo "ok $number - $name: $test fails"
		elif grep -q '^1\.\.1$' "$work/out" && grep -q '^ok 1 .*# SKIP' "$work/out"; then
			echo "ok $number - $name: $test # SKIP it cannot be run here"
		else
			missed=$((missed + 1))
			echo "not ok $number - $name: $test does not notice"
		fi
	done
}

if ! command -v perl >/dev/null 2>&1; then
	echo '1..0 # SKIP perl is not installed'
	exit 0
fi
copy_source || bail "cannot copy the source"

# --- the plan under the locks ---------------------------------------------------------------

mutant no-second-plan turn \
	-- 'if (again.kind != VERDICT_START || !gpuset_equals(&again.gpus, &set) ||' 'if ('
mutant no-lock commit \
	-- 'if (flock(file->fd, how) == 0) {' 'if (file->fd >= 0) {'
mutant locks-in-order-of-slots commit \
	-- 'for (; at > 0 && strcmp(view->gpus[slots[at - 1]].file.gpu.uuid,' \
	'for (; false && strcmp(view->gpus[slots[at - 1]].file.gpu.uuid,'
mutant names-of-singletons-not-locked turn \
	-- 'if (!request->is_singleton) return lock_and_take' 'return lock_and_take'
mutant deleted-file-keeps-the-grant turn \
	-- 'if (r == 0 && commit_is_current(&broker->view, set)) return 0;' 'return 0;'
mutant one-record-shows-one-gpu snapshot turn \
	-- '			!gpuset_has(&lease->lease.gpus, slot))' \
	'			!gpuset_has(&lease->seen, slot))' \
	-- '			if ((unsigned)slot >= snapshot->slots)' \
	'			if (!gpuset_has(&lease->seen, (unsigned)slot))'

# --- the bell -------------------------------------------------------------------------------

# drained before reading, never after: a ring is not lost
drained='bell_drain(broker->bell_fd); r = take_turn(broker, &why);'
not_drained='r = take_turn(broker, &why);'
mutant bell-drained-after-reading turn \
	-- "$drained" "$not_drained" \
	-- '	ended = end_turn(broker, is_spinning);' \
	'	bell_drain(broker->bell_fd); ended = end_turn(broker, is_spinning);'
mutant lack-of-descriptors-decides liveness \
	-- 'return error == -EMFILE || error == -ENFILE || error == -ENOMEM ? OWNER_ALIVE' \
	'return error == -EMFILE ? OWNER_UNDECIDED'
mutant end-before-the-wait liveness \
	-- 'if (set->has_changed) watch_until(watch, now_ms);' ''
mutant no-look-without-a-descriptor liveness \
	-- 'watch_until(watch, now_ms + (set->look_ms ? set->look_ms : LOOK_MS));' ';'
mutant bell-not-drained turn \
	-- "$drained" "$not_drained"

# --- the FIFO read before poll --------------------------------------------------------------

mutant history-keeps-no-fair-part history_keep \
	-- '		if (keep->parts[i].lines > fair)' '		if (false)'
mutant history-files-are-replaced history_keep \
	-- '		       RENAME_EXCHANGE) == 0;' '		       0) == 0;'
mutant taken-name-stops-a-user statedir \
	-- '	for (unsigned i = 0; i < LOCAL_NAMES && !must_exist && !*ret_is_new; i++) {' \
	'	for (unsigned i = 0; i < 1 && !must_exist && !*ret_is_new; i++) {'
mutant access-list-not-seen live_fifo \
	-- '		       fdio_has_acl(live_fd, name));' '		       false);'
mutant ended-job-without-gpus-kept queue_sweep \
	-- '		if (state == OWNER_DEAD && !ticket->request.gpus)' \
	'		if (state == OWNER_DEAD && !ticket->request.gpus && !ticket->owner.pid)'
mutant request-asked-again queue \
	-- '	return r == 0 ? ticket_append_control(&queue->file, &asked) : r;' \
	'	return r >= 0 ? ticket_append_control(&queue->file, &asked) : r;'
mutant fifo-not-read live_fifo liveness turn \
	-- '	state = live_fifo_look_again(fd);' '	state = LIVE_FIFO_HELD;'
mutant half-fired-is-over liveness snapshot commit \
	-- 'return liveness_is_dead(job) && job->fifo == LIVENESS_ENDED && job->rest' \
	'return liveness_is_dead(job) && job->rest'

# --- what jobs leave --------------------------------------------------------------------------

mutant what-is-left-is-no-job left_behind.sh \
	-- 'job->rest != LIVENESS_LIVES;' 'true;'
mutant not-looked-for-before-the-commit left_behind.sh \
	-- 'prober_want(&broker->prober, broker->state.now_ms);
	r = commit_look(&broker->view, &broker->result.verdict.gpus);' \
	'prober_want(&broker->prober, broker->state.now_ms); r = 0;'
mutant the-next-of-a-chain-is-missed left_behind.sh \
	-- 'owner_of_pid(signs->pid, &found) < 0 || found.start != stat.start) {' \
	'owner_of_pid(signs->pid, &found) < 0 || found.start != stat.start) { return;'
mutant low-pids-are-old left_behind.sh \
	-- ' || owner->pid <= RESERVED_PIDS)' ')'
mutant the-list-of-proc-is-believed proc \
	-- '*ret_is_proven = position == (long)pid + PROCESSES_AT;' '*ret_is_proven = true;'
mutant the-witness-lets-go left_behind.sh \
	-- '	if (leftover_find_of(&order->owner, lives->dir->pidns, &left) > 0) {' '	if (false) {'
mutant the-witness-waits-for-itself ending.sh \
	-- 'order->is_step || is_witness ? -1' 'order->is_step ? -1'
mutant the-command-ends-with-its-supervisor liveness orphans.sh \
	-- '	if (job->process == LIVENESS_ENDED && !job->is_orphaned && job->runs.pid)' '	if (false)'
mutant slots-are-reused-beside-jobs slots \
	-- '		if (!is_checked && is_any_job_alive(view, token))' '		if (false)'
mutant the-header-is-swept queue_sweep \
	-- 'if (sweep_page(queue, at, raw) == SWEEP_DEAD && at > 0) {' \
	'if (sweep_page(queue, at, raw) != SWEEP_LIVE || !at) {'

# --- tickets that do not act ------------------------------------------------------------------

mutant a-ticket-that-starts-nothing-is-waited-for passover \
	-- '	if (start->ready_ms && now_ms - start->ready_ms >= STUCK_MS)' '	if (false)'
mutant a-failed-probe-replaces-a-sound-one probe \
	-- '	if (r == 0 && probe_has_failed(probe) && !probe_has_failed(last))' '	if (false)'

# --- other users, and folders -----------------------------------------------------------------

mutant a-record-names-any-user owner \
	-- 'if (r == 0 && user == uid) return 0;' 'if (r == 0) return 0;'
mutant folders-through-links statedir \
	-- '		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);' \
	'		O_RDONLY | O_DIRECTORY | O_CLOEXEC);'
mutant batch-of-before-not-interrupted batch_resume.sh \
	-- 'if (life && life->process == LIVENESS_LIVES && !life->is_orphaned)' \
	'if (life && life->process == LIVENESS_LIVES && life->pidfd >= 0 && !life->is_orphaned)'

# --- the identity of a process -----------------------------------------------------------------------

mutant inode-not-compared owner \
	-- 'return inode == owner->inode ? OWNER_ALIVE : OWNER_DEAD;' 'return OWNER_ALIVE;'
mutant start-not-compared owner \
	-- 'return stat.start == owner->start ? OWNER_ALIVE : OWNER_DEAD;' 'return OWNER_ALIVE;'
mutant start-not-compared-without-pidfd owner \
	-- '	if (stat.start != owner->start)' '	if (false)'
mutant namespace-not-compared owner \
	-- 'if (owner->pidns != my_pidns)' 'if (false)'
mutant no-pidfd-is-death owner \
	-- 'state = pidfd >= 0 ? judge_by_pidfd(owner, pidfd) : judge_by_proc(owner);' \
	'state = pidfd >= 0 ? judge_by_pidfd(owner, pidfd) : OWNER_DEAD;'

# --- the hint -------------------------------------------------------------------------------

mutant hint-passes-the-living turn \
	-- '		if (r < 0 || life)' '		if (r < 0)'
mutant hint-one-too-far turn \
	-- 'if (broker->state.hint == broker->number)' 'if (true)'
mutant hint-passes-what-is-broken turn \
	-- '		broker->state.hint = broken;' '		(void)broken;'
mutant hint-hides-me queue \
	-- 'if (own && own < queue->from)' 'if (false)'
mutant hint-moves-back queue \
	-- 'if (hint <= queue->header.hint)' 'if (false)'

# --- appends that are cut -------------------------------------------------------------------

mutant size-limit-not-rounded rlimits \
	-- 'limit.rlim_cur -= limit.rlim_cur % step;' '(void)step;'
mutant sigxfsz-not-ignored rlimits \
	-- '(void)sigaction(SIGXFSZ, &ignore, &before.size_action);' '(void)ignore;'
mutant sigpipe-not-given-back rlimits \
	-- '	(void)sigaction(SIGPIPE, &before.pipe_action, NULL);' ''
mutant end-not-repaired ticket \
	-- 'r = ticket_fill_block(file, st.st_size);' 'r = 0;'
mutant shifted-append-not-seen ticket \
	-- '	if (end_at % RECORD_SIZE) {' '	if (false) {'

# --- rights ---------------------------------------------------------------------

mutant every-user-cancels queue \
	-- '(demand->uid == 0 || demand->uid == owner_uid)' '(owner_uid || true)'
mutant a-name-cancels-others cancel_choice \
	-- 'return (is_own || is_root) && !job->cut_hash &&' 'return !job->cut_hash &&'
mutant all-is-for-every-user cancel_choice \
	-- 'return is_root;' 'return true;'
mutant a-beginning-of-a-name-chooses cancel_choice \
	-- '(is_own || is_root) && !job->cut_hash &&' '(is_own || is_root) &&'
mutant any-link-is-a-name job_name \
	-- 'if (!job_name_is_whole(target + PREFIX_SIZE, hash)) return false;' ''
mutant a-sweep-takes-names-of-leases job_name \
	-- 'return job_name_is_old(folder_fd, name) && !(sweep->is_leased && sweep->is_leased(sweep->leases, token));' \
	'return true;'
mutant folders-have-the-umask srun.sh \
	-- 'ours = umask(0); r = userfile_mkdir' 'ours = umask(077); r = userfile_mkdir'
mutant cancel-asks-no-more cancelling_many.sh \
	-- 'settings->verb.yes || cancel.chosen < 2' 'true'
mutant head-not-protected policy turn \
	-- 'struct gpuset reserved = gpuset_and(&room, &plan->reserved), over;' \
	'struct gpuset reserved = GPUSET_NONE, over;'
mutant old-boot-counts snapshot \
	-- 'seen->is_of_this_boot = strcmp(seen->lease.boot, snapshot->dir->boot) == 0;' \
	'seen->is_of_this_boot = true;'

# --- how much of a GPU ----------------------------------------------------------------------

mutant shares-beyond-one room plan_properties \
	-- 'if (room->leases == 0 || room->percent < need->percent)' 'if (room->leases == 0)'
mutant no-margin room \
	-- '(has_margin ? margin_mib : 0)' '(has_margin ? 0 * margin_mib : 0)'
mutant no-margin-beside-declared-memory room plan_properties \
	-- 'room->has_margin = room->has_margin || is_declared;' '(void)is_declared;'
mutant a-share-has-no-memory room \
	-- 'return need->mib ? need->mib' 'return need->mib || true ? need->mib'
mutant a-whole-job-joins-others plan_properties \
	-- 'return room->leases == ROOM_LEASES;' 'return true;'
mutant others-join-a-whole-job room \
	-- 'if (percent == WHOLE_PERCENT || gpu->is_solo) {' 'if (gpu->is_solo) {'
mutant any-number-of-leases room \
	-- 'room->leases -= room->leases > 0;' '(void)0;'
mutant strangers-have-no-memory room \
	-- 'room.mib = gpu->total_mib - gpu->foreign_mib;' 'room.mib = gpu->total_mib;'
mutant a-share-beside-a-stranger room \
	-- 'if (need->percent && (gpu->foreign_mib ||' 'if (false && (gpu->foreign_mib ||'

# --- which GPUs -----------------------------------------------------------------------------

mutant not-the-best-fit choice \
	-- 'choice->need.mib ? mib : percent,' '(choice->need.mib ? mib : percent) * 0,'
mutant whole-gpus-for-parts choice \
	-- 'gpuset_has(&choice->free, slot),' '0,'
mutant wishes-not-obeyed choice \
	-- 'while (at < prefer->count && prefer->slots[at] != slot)' 'while (at < prefer->count)'
mutant links-not-looked-at choice \
	-- 'if (choice->count > 1 && choice->links && need_is_whole(&choice->need))' 'if (false)'

# --- the head, and tickets that pass it ---------------------------------------------------------

mutant backfill-without-a-limit policy plan_properties \
	-- 'return bound_ms && row->limit_ms &&' 'return bound_ms &&'
mutant backfill-past-the-start policy \
	-- 'plan->facts->now_ms + row->limit_ms + row->grace_ms + BACKFILL_MARGIN_MS <=' \
	'plan->facts->now_ms + row->grace_ms + BACKFILL_MARGIN_MS <='
mutant backfill-of-what-has-no-end policy \
	-- 'if (at_ms == INT64_MAX) return room; room = room_then(plan,' 'if (false) return room; room = room_then(plan,'
mutant beside-the-head-without-it policy \
	-- 'room_take(&room, &plan->facts->gpus[slot], &row->need);' '(void)row;'
mutant beside-the-head-again-and-again plan_properties \
	-- '		room_take(&plan->later[slot], gpu, &row->need);' '		(void)gpu;'
mutant the-latest-are-reserved policy \
	-- 'if (when_ms[slot] < when_ms[best])' 'if (when_ms[slot] > when_ms[best])'
mutant a-start-takes-nothing policy plan_properties \
	-- '	room_take(now, gpu, &row->need);' '	(void)now;'
mutant the-end-of-the-head-unseen turn \
	-- '		verdict.kind == VERDICT_LEASED)' '		false)'
mutant closed-too-early policy \
	-- 'if (!gpuset_has(&plan->reserved, (unsigned)slot) ||' 'if (' \
	-- '			plan->heads[plan->head_of[slot]].backfill_ms ||' ''

# --- the order, and what holds back ---------------------------------------------------------

order='return a.priority > b.priority;
	return a.order_ms != b.order_ms ? a.order_ms < b.order_ms : a.number < b.number;'
mutant priority-does-not-count queue \
	-- "$order" \
	'return a.number < b.number; return a.number < b.number;'
mutant lower-priority-first queue \
	-- "$order" \
	'return a.priority < b.priority; return a.number < b.number;'
mutant equals-by-chance queue \
	-- "$order" \
	'return a.priority > b.priority; return a.number > b.number;'
mutant order-does-not-count queue renew \
	-- 'if (order_ms < since_ms) {' 'if (false && order_ms < since_ms) {'
mutant renewed-misses-a-cancel renew \
	-- '(void)!queue_begin(&broker->queue, number);' ''
mutant renewed-counts-as-started renew \
	-- 'ticket.state == TICKET_LEFT)) {' 'false)) {'
mutant any-user-changes-a-priority renew \
	-- '(control->uid != 0 && control->uid != wish->uid))' 'false)'
mutant an-early-time-stays renew \
	-- 'if (now_ms - broker->ticket.since_ms <= ARRIVAL_MS)' 'if (now_ms)'
mutant a-first-ticket-is-swept queue_sweep \
	-- '(ticket.latest && number_may_live(queue, ticket.latest, &latest)))' \
	'(false && number_may_live(queue, ticket.latest, &latest)))'
mutant fair-share-without-a-limit share -- 'return min_i64(
		(int64_t)(gpu_s * (uint64_t)share->rate_ms / 3600), share->most_ms);' \
	'return (int64_t)(gpu_s * (uint64_t)share->rate_ms / 3600);'
mutant fair-share-can-be-stopped share \
	-- 'clock_boot_ms() - ticket->since_ms >= LATE_MS);' 'false && LATE_MS);'
mutant fair-share-counts-again share -- 'broker->state.is_late = true;
	if (!counts.late_ms)' 'if (!counts.late_ms)'
mutant an-end-counts-twice share -- '&& !lease->is_recorded)
			gpu_ms += gpu_hours_weigh' ')
			gpu_ms += gpu_hours_weigh'
mutant hours-are-lost-behind-a-lock gpu_hours \
	-- 'r = append_day(fd, raw);' 'r = 0;'
mutant old-hours-count gpu_hours \
	-- 'day.day < search->day || day.day > search->latest' 'day.day > search->latest'
mutant a-shell-gives-its-status-to-the-job notify.sh \
	-- 'if (!order->is_shell || !was_us)' 'if (true)'
mutant the-end-of-a-job-is-when-it-is-told notify.sh \
	-- '		shell_tell_end(order, gone_ms);' '		shell_tell_end(order, 0);'
mutant usage-that-cannot-be-read-is-none share -- 'r < 0 ? share->most_ms' 'false ? share->most_ms'
mutant a-released-job-keeps-its-place renew \
	-- 'return hold_until(broker, clock_boot_ms() + JOIN_AGAIN_MS);' \
	'return hold_until(broker, 0);'
mutant tickets-that-were-left-stay queue_sweep \
	-- 'ticket->state != TICKET_LEFT || !ticket->job' 'true'
mutant requests-that-were-obeyed-stay queue_sweep \
	-- 'control->verb == CONTROL_CANCEL || ticket.latest < number' 'true'
mutant a-reader-loses-a-ticket-that-is-swept renew \
	-- 'kind == TICKET_VOID || (kind' 'false || (kind'
mutant extensions-overwrite-each-other commit \
	-- 'change->was_ms && change->was_ms != lease.limit_ms' 'false'
mutant a-held-job-keeps-its-name later.sh \
	-- '(row->ticket.attempt > 1 ||' '(true ||'
mutant a-gpu-without-a-probe-is-the-first hardened_windows.sh \
	-- ', .row = -1' ''
mutant a-held-ticket-starts policy \
	-- '	if (row->hold != DEPENDENCY_NONE) {' '	if (false) {'

# --- limits ---------------------------------------------------------------------------------

mutant limits-do-not-bind policy \
	-- 'if (!use->most || use->used + use->more <= use->most)' 'if (use)'
mutant lent-group-counts-as-own hardened_limits.sh \
	-- 'groups[0] = getgid();' 'groups[0] = getegid();'
mutant unknown-names-bind-nobody user_limits \
	-- 'if (*is_unnamed) tighten(&line, ret);' ''
mutant limits-of-tickets-ignored room \
	-- 'return own ? own : key;' 'return key;'
mutant no-line-of-limits-in-the-ticket user_limits.sh \
	-- '.most_gpus = context->most_gpus,' ''
mutant root-is-bound room \
	-- 'if (!uid || own == PLAN_NO_LIMIT)' 'if (own == PLAN_NO_LIMIT)'
mutant a-start-is-not-counted policy \
	-- 'quota->all.percent += percent;' '(void)percent;' \
	-- 'user->percent += percent;' '(void)user;'
mutant the-head-keeps-no-quota policy plan_properties \
	-- 'if (gpuset_count(&offered) >= row->gpus && leaves_quota(plan, row))' \
	'if (gpuset_count(&offered) >= row->gpus)'
mutant limits-are-not-checked-after-the-lease turn \
	-- 'return quota_forbids(&quota, &row, NULL, &excess) ? BROKER_AGAIN : 0;' 'return 0;'
mutant a-start-rings-nobody turn \
	-- 'if (plan_next(plan, &theirs).kind == VERDICT_START)' 'if (false)'
mutant early-leases-count-in-a-choice plan_properties \
	-- 'early->since_ms < row->place.since_ms ||' 'true ||'
mutant early-leases-hold-others-back policy \
	-- 'unseen.all_leases && !is_over_limit(' 'false && !is_over_limit('
mutant an-early-lease-is-not-marked turn \
	-- 'if (passover_plans_any(&broker->passover))' 'if (false)'
mutant a-small-card-counts-as-a-large-one plan_properties \
	-- 'plan->over = gpuset_or(&plan->over, &over);' ''
mutant backfill-takes-from-what-the-head-leaves plan_properties \
	-- 'max_i64(stay->when_ms[slot], head->backfill_ms)' 'stay->when_ms[slot]'
mutant a-broken-gpu-holds-within-a-limit policy \
	-- 'if (gpuset_count(&candidates) < row->gpus || is_limit_unseen(plan, row)) {' \
	'if (is_limit_unseen(plan, row)) {'
mutant past-the-head-while-something-is-left policy plan_properties \
	-- 'if (is_any_clearing(plan, candidates))' 'if (false && is_any_clearing(plan, candidates))'
mutant own-thresholds-hold-others-back turn \
	-- '*allow = gpuset_minus(allow, refused);' ''
mutant own-thresholds-are-not-announced turn \
	-- 'if (r == 0 && !gpuset_is_empty(&left))' 'if (false)'
mutant own-thresholds-send-jobs-back thresholds.sh \
	-- 'return !broker->input.own_usage &&' 'return'
mutant preemption-is-not-foreseen preempting.sh \
	-- 'return may_send_back(broker) ? with_aside(broker, &could_start, choose_and_name)' \
	'return false ? with_aside(broker, &could_start, choose_and_name)'
mutant preemption-is-foreseen-by-one-of-many preempting.sh \
	-- 'if (view->leases[i].aside == ASIDE_NEEDED)
			text_addf' 'if (view->leases[i].aside == ASIDE_NEEDED && !ids.used)
			text_addf'
mutant own-thresholds-may-be-laxer own_thresholds \
	-- 'if (own == most || (own > most) == threshold->is_floor)' 'if (own <= most || most)'
mutant own-thresholds-judge-other-jobs stricter \
	-- 'last = judge_by(view, &machine, request, now_ms, &fits);' \
	'last = judge_by(view, &machine, request, now_ms, &fits), (void)judge_by(view, own, request, now_ms, &strictly);'
mutant past-peak-does-not-count snapshot \
	-- 'return gpu->past_mib ? GPU_EXTERNAL : GPU_FREE;' 'return GPU_FREE;'
mutant past-peak-of-a-left-process snapshot \
	-- ' || is_left_by_a_job(view, pid))' ')'
mutant what-settles-is-foreign usage \
	-- 'held = &found->settling;' 'held = &found->foreign;'
mutant past-a-ticket-held-by-a-limit policy \
	-- 'if (user && !user->held)' 'if (false)'

# --- a file of several leases ---------------------------------------------------------------

mutant living-sharers-overwritten commit \
	-- 'if (!known || !known->is_over) {' 'if (false) {'
mutant peaks-not-kept commit \
	-- 'r = known ? keep_record(file, at, &old, known) : 0;' 'r = 0;'
mutant peaks-always-written commit \
	-- 'if (live->lease.peak_mib <= old->peak_mib)' 'if (false)'
mutant the-dead-stay-beside commit \
	-- 'if (free_at) /* the first free record is overwritten anyway */' 'if (false)'
mutant the-last-free-record commit \
	-- '		if (!free_at)' '		if (true)'
mutant what-was-put-back-overwritten commit \
	-- 'r = mend_file(view, file, raw, records); if (r == 0)' \
	'(void)mend_file(view, file, raw, records); if (false)'
mutant a-record-too-many commit \
	-- '	if (r == 0 && !free_at)' '	if (false)'
mutant fifo-outlives-its-record commit \
	-- '	fifo_remove(view->dir, FIFO_LIVE, lease->owner.token);' '	(void)lease;'

# --- nvidia-smi that hang --------------------------------------------------------------------

mutant a-busy-nvidia-smi-hangs probe_lock \
	-- " && stat->start < before &&" " &&"
mutant a-users-nvidia-smi-counts hardened_blind.sh \
	-- 'st.st_gid == rights_lent_group());' 'true);'
mutant a-row-of-holders-is-waited-for probe_lock \
	-- 'taken_ms - lock->taken_ms[which] >= brief_ms)' 'taken_ms != lock->taken_ms[which])'

# --- the owner of memory ---------------------------------------------------------------------------

mutant seen-beside-others-is-quiet commit \
	-- '	if (lease->is_seen)' '	if (false)'
mutant quiet-without-probes usage \
	-- 'probe->started_ms - life->quiet_seen_ms > PROBE_GAP_MAX_MS)' 'false)'
mutant no-peak commit usage \
	-- 'if (lease->here_mib > lease->lease.peak_mib)' 'if (false)'
mutant a-peak-is-not-counted usage \
	-- 'return lease->peak_mib > declared_mib ? with_buffer(policy, lease->peak_mib)' \
	'return false ? with_buffer(policy, lease->peak_mib)'
mutant no-buffer usage \
	-- 'return mib + mib / 100 * policy->spike_percent +' 'return mib + 0 *'
mutant hidden-memory-is-not-counted usage \
	-- 'if (seen->is_known && seen->used_mib > found.listed)' 'if (false)'
mutant the-dead-still-count usage \
	-- 'if (!lease->is_over && gpuset_has(&lease->lease.gpus, slot) &&' \
	'if (gpuset_has(&lease->lease.gpus, slot) &&'

mutant steps-and-their-children-are-warned requeue.sh \
	-- '	       strcmp(value, own) == 0;' '	       value[0];'
mutant the-script-is-warned-with-the-steps requeue.sh \
	-- '		process_lease_signal(owner->token, owner->uid, number, owner->pid,
			PROCESS_LEASE_STEPS) > 0;' '		process_lease_signal(owner->token, owner->uid, number, owner->pid,
			PROCESS_LEASE_ALL) > 0;'

# --- jobs that are tried again --------------------------------------------------------------

mutant a-request-for-an-earlier-attempt-counts requeue \
	-- '			demand->by == by &&' ''
mutant a-request-made-at-the-end-is-not-read requeue.sh \
	-- '	if (r == 0 && broker_read_orders(watched.broker) == BROKER_ORDER_REQUEUE)' \
	'	if (false)'
mutant a-requeued-job-ends-as-its-status-says retry_policy \
	-- '	if (end->cause == CAUSE_REQUEUE && !end->is_cancelled_late)
		return RETRY_NEXT_REQUEUE;
	if (end->was_told' '	if (end->was_told'

mutant given-back-is-still-held requeue \
	-- '	if (seen->lease.released_ms)' '	if (false)'
mutant nothing-is-given-back requeue \
	-- 'if (change->is_released && !lease.released_ms) lease.released_ms = clock_boot_ms();' \
	''
mutant the-old-fifo-is-kept requeue \
	-- '	close_fd(&debt->live_fd);' '	(void)debt->live_fd;'
mutant the-first-names-no-latest requeue \
	-- '	first.latest = broker->number;' '	first.latest = 0;'
mutant the-old-ticket-stays-granted requeue \
	-- '	before.state = TICKET_LEFT;' '	(void)before;'
mutant tried-again-at-once dependency \
	-- '	int64_t until_ms = row->ticket.not_before_ms;' '	int64_t until_ms = 0;'
mutant held-by-a-later-ticket dependency \
	-- 'if (r == 0 && !outcome &&' 'if (r == 0 &&'
mutant no-singleton-without-gpus dependency \
	-- '	if (ticket->request.gpus || !ticket->request.name[0] ||' '	if (true ||'
mutant oom-retry-has-no-more retry_policy \
	-- '	uint64_t wanted_mib = had_mib + (had_mib + 3) / 4;' \
	'	uint64_t wanted_mib = had_mib;'
mutant an-interrupted-job-goes-on retry_policy \
	-- '	if (end->wait_status == 0 || attempt_was_interrupted(end))' '	if (end->wait_status == 0)'
mutant a-job-told-to-end-goes-back-into-the-queue retry_policy \
	-- 'end->was_told || end->is_done || end->is_cancelled_late' \
	'end->is_done || end->is_cancelled_late'
mutant a-cancel-that-comes-too-late-counts ends.sh \
	-- '!watched->has_warned && !command_is_alive(watched)' 'false'
mutant a-cancel-that-comes-too-late-is-marked ends.sh \
	-- 'if (marked == 0 && (r < 0 || !end->was_alive))' 'if (false)'
mutant a-lease-does-not-say-who-cancelled-it ends.sh \
	-- '.token = token, .cancelled_by = by }' '.token = token }'
mutant a-watchdog-does-not-know-of-a-cancel ends.sh \
	-- 'if (cancelled.is_so) {' 'if (false) {'
mutant a-watchdog-is-not-waited-for ends.sh \
	-- 'ret->cause_ms = ret->patience_ms = EXACT_MS;' ';'
mutant a-limit-with-status-0-is-a-success end_cause ends.sh \
	-- '[CAUSE_LIMIT] = { HISTORY_LIMIT, END_TIMED_OUT, GAVE_UP, true }' \
	'[CAUSE_LIMIT] = { HISTORY_LIMIT, END_TIMED_OUT, OWN, false }'
mutant no-record-of-an-end-without-gpus ends.sh plain_status.sh \
	-- 'own->leaseless = &job.broker.ticket;' 'own->leaseless = NULL;'

# --- preemption -------------------------------------------------------------------

mutant every-job-may-be-preempted preempt \
	-- '	return record->is_preemptible && record->is_supervised &&' \
	'	return record->is_supervised &&'
mutant by-every-priority preempt \
	-- '	       record->priority < priority;' '	       (priority || true);'

mutant a-lease-set-aside-counts-for-limits preempt \
	-- '!lease->is_over && lease->aside == ASIDE_NOT)' '!lease->is_over)'

# --- the history ----------------------------------------------------------------------------

mutant a-waiter-puts-the-history-aside history \
	-- '	if (flock(file->fd, LOCK_EX | LOCK_NB) < 0)' '	if (flock(file->fd, LOCK_EX) < 0)'
mutant a-lost-line-is-told history \
	-- '	return st.st_nlink ? 0 : WRITE_LOST;' '	return 0;'

# --- jobs files -----------------------------------------------------------------------------

mutant batch-lock-not-inherited batch_child \
	-- 'r = child_keep_fds(ends[1], journal->fd, journal->lock_fd, log);' \
	'r = child_keep_fds(ends[1], journal->fd, journal->fd, log);'
mutant batch-begun-without-a-journal batch_disk.sh \
	-- 'if (r < 0 && event->kind == BATCH_SEEN)' 'if (false && event->kind == BATCH_SEEN)'
mutant batch-lost-end-is-not-kept batch_disk.sh \
	-- '	if (is_unwritten)' '	if (false)'
mutant batch-recall-ignored batch_child batch_live.sh \
	-- '			own->was_recalled = true;' '			(void)byte;'
mutant batch-edit-between-attempts-ignored batch_live.sh \
	-- '(own->was_recalled && is_member_waiting(own))' '(own->was_recalled && !own->is_begun)'
mutant batch-cancelled-is-done end_cause batch.sh \
	-- 'END_CANCELLED, 128 + SIGTERM, false }' 'END_CANCELLED, OWN, false }'
mutant batch-death-of-the-runner-unseen batch_child batch_resume.sh \
	-- '			own->is_orphaned = true;' '			(void)byte;'
mutant batch-started-told-too-late batch_child \
	-- '	if (order->observer)' '	if (false)' \
	-- '		(void)!write(ends[1], "!", 1);' \
	'		(void)!write(ends[1], "!", 1);
		(void)!watched->order->observer->starts(watched->order->observer->context,
			watched->order->broker, watched->order->launch,
			watched->order->waited_ms);'
mutant batch-interrupted-is-done batch_child batch_resume.sh \
	-- 'event->is_interrupted = was_stopped_by_runner(own, news->end);' \
	'event->is_interrupted = false && was_stopped_by_runner(own, news->end);'
mutant batch-wait-stays-in-the-log batch_live.sh batch_resume.sh \
	-- '(void)!ftruncate(background_log(STDERR_FILENO), own->log_size);' '(void)own->log_size;'
mutant session-of-any-user hardened_sessions.sh \
	-- 'peer.uid == getuid();' 'true;'
mutant session-log-lags sessions.sh \
	-- 'session_flush(); at->end.is_oom' 'at->end.is_oom'
mutant session-relay-blocks sessions.sh \
	-- '(void)fcntl(job, F_SETFL, O_NONBLOCK);' ''
mutant session-begun-once sessions.sh \
	-- 'START_TRIES = 10' 'START_TRIES = 1'
mutant batch-oom-bump-forgotten batch_jobs \
	-- '		job->vram_mib = event->next_mib;' '		(void)job;'
mutant batch-memory-of-attempts-forgotten batch_jobs batch_resume.sh \
	-- '		job->vram_mib = event->next_mib;' '		(void)job;' \
	-- '	job->vram_mib = event->vram_mib;' '	(void)job;'
mutant batch-word-cancel-forgotten batch_jobs batch_resume.sh \
	-- 'job->is_by_line = event->is_by_line || job->is_cancelling;' \
	'job->is_by_line = job->is_cancelling;'
mutant batch-a-done-job-keeps-the-line batch_match \
	-- 'return job->state == BATCH_ENDED ? RANK_ENDED : RANK_LIVE;' \
	'return job->state == BATCH_ENDED ? RANK_LIVE : RANK_ENDED;'
mutant batch-environment-is-no-identity batch_match batch_identity.sh \
	-- 'if (claims[i].is_matched || !batch_is_open(job))' 'if (claims[i].is_matched)'
mutant batch-once-ignores-the-environment batch_plan batch_identity.sh \
	-- 'other->number == job->number || !is_same_environment(other, job)' \
	'other->number == job->number'
mutant batch-environment-not-recorded batch_jobs batch_event \
	-- 'OF_HEX, environment, ON(SEEN) | ON(STARTED)' 'OF_HEX, environment, ON(SEEN)'
mutant batch-script-not-looked-for batch_csv.sh \
	-- 'if (environment->line) {' 'if (!environment->line) {'
mutant missing-script-takes-a-gpu missing_script.sh \
	-- '(!environment->line && script == *command))' '!environment->line)'
mutant script-of-a-setup-looked-for missing_script.sh \
	-- 'if (!script || environment->setup ||' 'if (!script ||'
mutant set-up-takes-the-lease-away setup.sh \
	-- 'if (environment->setup) check_after(environment, "setup", out);' ''
mutant profile-takes-the-lease-away job_scripts.sh \
	-- 'set_again_check(LOGIN_SHELL, &text);' ''
mutant batch-inject-keeps-the-value batch_settings batch_csv.sh \
	-- 'words_take(&value, &taken) && inject_is_value(word.at))' 'false)'
mutant batch-impossible-line-is-125 batch.sh \
	-- 'if (has_run && not_run == EXIT_MISUSE)' 'if (!has_run && not_run == EXIT_MISUSE)'
mutant batch-priority-does-not-count batch_plan batch.sh \
	-- 'return a->priority > b->priority ? -1 : 1;' 'return a->at < b->at ? -1 : 1;'
mutant batch-order-not-kept batch_live.sh \
	-- 'if (r == 0 && !is_same_order(runner, numbers, list->count))' \
	'if (r == 0 && false && !is_same_order(runner, numbers, list->count))'
mutant batch-all-queue-again batch_live.sh \
	-- 'bool is_moved = runner->plan.is_reordered;' 'bool is_moved = true;'
mutant batch-never-run-again batch_live.sh \
	-- 'if (job->line_hash != batch_line_hash(job->line) ||' \
	'if ((false && batch_line_hash(job->line)) ||'
mutant batch-queue-is-full-of-it batch.sh \
	-- 'return (waiting < QUEUE_MAX ||' 'return (waiting < QUEUE_MAX + 1 ||'
mutant batch-queue-is-full-of-attempts batch.sh \
	-- 'job->state == BATCH_IN_QUEUE || job->is_between;' 'job->state == BATCH_IN_QUEUE;'
mutant batch-ends-with-lines-unread batch_file batch_live.sh \
	-- '	if (!has_unread_change(file))' '	if (true || !has_unread_change(file))'
mutant batch-written-to-an-unlinked-journal batch_journal batch_resume.sh \
	-- '	if (!st.st_nlink)' '	if (false)'
mutant batch-no-ticket-is-failure hardened_batch.sh \
	-- 'if (r == -EDQUOT && observer) {' 'if (false) {'
mutant batch-board-erased-by-a-row-less batch_board.sh \
	-- 'text_addf(&text, "\r\033[%uA\033[J", show->rows_shown);' \
	'text_addf(&text, "\r\033[%uA\033[J", show->rows_shown - 1);'
mutant log-of-another-user-shown config.sh \
	-- '!job->log[0] && job->uid == namespaces_own_user()' '!job->log[0]'
mutant batch-folder-opened-with-all-rights hardened_batch.sh \
	-- '	r = journal_open_folder(&journal, why);' \
	'	rights_as_user_end(); r = journal_open_folder(&journal, why);'


# --- the commands of Slurm ------------------------------------------------------------------

mutant folder-of-a-job-with-what-is-mounted remove_folder \
	-- 'if (st.st_dev != removal->device || mount_of(folder) != removal->mount)' 'if (st.st_dev != removal->device)'
mutant folder-of-a-job-through-links remove_folder \
	-- 'openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);' 'openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);'
mutant steps-with-a-gpu-option-share steps.sh \
	-- 'return request->exclusive || (request->apart && need_is_whole(&need));' 'return request->exclusive;'
mutant shared-gpus-are-not-told steps.sh \
	-- 'lock->meets_other = true;' 'continue;'
mutant folder-of-a-job-stays job_scripts.sh \
	-- '(void)!remove_folder(KEPT_FD, name);' '(void)name;'
mutant variables-of-the-user-are-dropped job_scripts.sh \
	-- 'of_a_job[] = { "SLURM_ARRAY_JOB_ID",' 'of_a_job[] = { "SLURM_*",'
mutant scancel-of-all-users slurm_programs.sh \
	-- '(value_of(scancel, "me") || !*scancel->ids)' 'value_of(scancel, "me")'
mutant scancel-of-any-name slurm_programs.sh \
	-- 'has_slurm_user(&scancel->users, job->user) && has_name(scancel, job);' \
	'has_slurm_user(&scancel->users, job->user);'
mutant squeue-of-old-jobs slurm_jobs \
	-- 'jobs->now_ms - job->ended_ms < SLURM_MEMORY_MS' 'true'
mutant hostlist-without-end hostlist \
	-- 'if (!fault && count > HOSTLIST_HOSTS_MAX)' 'if (false)'

# --- memory that jobs use -------------------------------------------------------------------

mutant few-samples-are-compared use_verdict report report.sh \
	-- 'if (!is_spanned || !seen_mib)' 'if (!seen_mib)'
mutant memory-that-is-not-seen-is-compared use_verdict \
	-- 'if (!is_spanned || !seen_mib)' 'if (!is_spanned)'
mutant the-end-is-not-unseen sampler report \
	-- 'sample_gpu_unseen_ms(sampler, gpu, sampler->begun_ms + life_ms), life_ms,' \
	'gpu->unseen_ms, life_ms,'
mutant no-sample-soon-after-the-start sampler report.sh \
	-- 'if (sampler->begun_ms + early_ms[i] > at_ms)' 'if (false)'
mutant excess-is-told-at-each-sample sampler -- 'gpu->has_exceeded = true;' '(void)gpu;'
mutant batch-excess-is-not-told batch_child \
	-- 'member_send_use(own, BATCH_EXCESS, &event);' '(void)event;'
mutant batch-board-stands-still batch_show batch.sh \
	-- 'return has_running_job(board) ? show->written_ms + IDLE_WRITE_MS : INT64_MAX;' \
	'return INT64_MAX;'
mutant batch-board-is-written-for-nothing batch_show \
	-- 'return has_running_job(board) ? show->written_ms + IDLE_WRITE_MS : INT64_MAX;' \
	'return show->written_ms + IDLE_WRITE_MS;'

# --- the use of GPUs, and what shows it -----------------------------------------------------

mutant use-goes-on-across-a-gap lease_use \
	-- 'if (passed_ms >= sample->gap_ms) {' 'if (false) {'
mutant use-of-an-old-sample lease_use \
	-- 'if (passed_ms <= 0 || sample->at_ms < sample->since_ms)' 'if (false)'
mutant use-of-a-share-is-judged unused_never.sh \
	-- 'gpu_is_instance(&gpu->file.gpu) || !need_is_whole(&need) ||' \
	'gpu_is_instance(&gpu->file.gpu) ||'
mutant use-ends-a-job-for-nobody use_rule \
	-- 'if (limits->end_ms && now->is_waited_for &&' 'if (limits->end_ms &&'
mutant use-ends-a-job-after-one-warning use_rule \
	-- 'if (now->warnings == 1)' 'if (false)'
mutant use-of-another-user-is-sampled hardened_unused.sh \
	-- '(held->lease.owner.uid == namespaces_own_user() || getuid() == 0))' 'true)'
mutant view-keeps-the-group hardened_view.sh \
	-- 'other_program_find(name, path) < 0 || privilege_drop() < 0)' \
	'other_program_find(name, path) < 0)'
mutant markup-is-not-escaped timeline \
	-- "['<'] = \"&lt;\"," "['<'] = \"<\","
mutant hosts-that-send-escapes hosts \
	-- 'if (!json_is_clean(object)) return -EINVAL;' ''
mutant top-leaves-the-terminal top.sh \
	-- 'if (!is_dismissed(fds[0]) &&' 'if (false && !is_dismissed(fds[0]) &&'
mutant top-draws-before-all-ends top.sh \
	-- 'source->has_ended = source->ended_ms >= 0;' 'source->has_ended = true;'

# --- the engine -----------------------------------------------------------------------------

mutant engine-in-a-job-of-slurm engine_choice.sh \
	-- 'if ((job && *job) || (sim && *sim)' 'if ((sim && *sim)'
mutant engine-with-simulated-gpus engine_choice.sh \
	-- '(sim && *sim) || machine->sim_gpus)' 'false)'
mutant engine-by-a-word-of-the-command engine_choice.sh \
	-- 'if (r == 0 && !is_chosen(&line))' 'if (false)'
mutant engine-lets-refused-options-pass engine_choice.sh \
	-- 'if (r == 0) r = check_refused(ret, why);' ''
mutant engine-doctor-asks-a-silent-controller engine_doctor.sh \
	-- 'if (!doctor->has_programs || !engine_check_controller(doctor))' \
	'(void)engine_check_controller(doctor); if (!doctor->has_programs)'
mutant engine-believes-names-of-jobs cluster_jobs \
	-- 'strcmp(fields[JOB_MARK], mark) != 0 ||' ''
mutant engine-believes-gpus-in-names cluster_view \
	-- 'if (!node || reading->marks[node - reading->nodes->list] != reading->job + 1)' \
	'if (!node)'
mutant engine-joins-jobs-with-one-id cluster_ended \
	-- 'before->end.ticket == end->end.ticket && before->goes_on &&' \
	'before->end.ticket == end->end.ticket &&'

# what is read of the cluster
mutant engine-takes-the-first-of-several-types engine_words \
	-- 'if (found == 1) return 0;' 'if (found) return 0;'
mutant engine-counts-gpus-twice cluster_gres \
	-- 'return has_total ? total : count;' 'return total + count;'
mutant engine-counts-a-node-in-each-partition cluster_view \
	-- 'nodes->list[nodes->by_name[i]].first = SIZE_MAX;' ';'
mutant engine-uses-nodes-that-do-not-answer cluster_view \
	-- "if (strchr(text + size, '*')) node->phase = NODE_DOWN; else if" 'if'
mutant engine-shows-gpus-of-hidden-jobs-as-free cluster_view \
	-- 'gpu->holder_count || gpuset_has(&node->used, index) ||' 'gpu->holder_count ||'
mutant engine-gives-a-gpu-to-two-jobs cluster_view \
	-- 'if (places->taken[gpu]) return;' ''
mutant engine-takes-a-later-state-for-an-end engine_poll cluster_jobs \
	-- '{ "", SLURM_RUNS, 0, -1, NULL };' '{ "", SLURM_ENDED, END_FAILED, -1, NULL };'
mutant engine-shows-names-of-jobs-raw render engine_answers.sh \
	-- 'text_add_visible(&out, text);' 'text_add(&out, text);'
mutant engine-history-has-jobs-that-run engine_accounting.sh \
	-- 'count += end->is_over && ended_filter_admits(filter, &end->end);' \
	'count += ended_filter_admits(filter, &end->end);' \
	-- 'if (!end->is_over || !ended_filter_admits(filter, &end->end))' \
	'if (!ended_filter_admits(filter, &end->end))'

mutant engine-reason-with-details-is-unknown cluster_jobs \
	-- 'return strcspn(text, ",(:");' 'return strlen(text);'

# questions to Slurm
mutant engine-waits-for-a-silent-program slurm_ask \
	-- 'answer_wait(ret, deadline_ms); if (ret->fault == 0)' \
	'answer_wait(ret, INT32_MAX); if (ret->fault == 0)'
mutant engine-passes-variables-of-slurm-on slurm_ask \
	-- 'if (!is_of_slurm(*at))' 'if (true)'
mutant engine-takes-silence-for-the-end engine_answers.sh \
	-- 'if (answer->status != 0 && (is_own || !knows_none(answer)))' 'if (false)'
mutant engine-believes-that-a-requeued-job-has-ended engine_poll \
	-- 'return now_ms - job->doubtful_ms >= POLL_DOUBT_MS;' 'return true;'
mutant engine-takes-the-end-of-an-earlier-job engine_poll \
	-- 'return (int64_t)number_of(fields[ROW_SUBMIT]) >= job->submit_s;' 'return true;'
mutant engine-waits-for-a-stopped-process engine_poll \
	-- 'if (!is_stopped(fd, now_real_ms))' 'if (true)'

# what is asked for
mutant engine-limit-becomes-none engine_words \
	-- '(long long)(limit_ms + MINUTE_MS - 1) / MINUTE_MS' '(long long)limit_ms / MINUTE_MS'
mutant engine-share-becomes-nothing engine_words \
	-- '(percent * all + 99) / 100' 'percent * all / 100'
mutant engine-line-adds-to-the-gpus-of-the-batch engine_entry \
	-- 'if (given & 1u << BATCH_GPUS && is_one_of(name, of_gpus, ARRAY_SIZE(of_gpus)))' \
	'if (false)'
mutant engine-state-in-another-folder engine_submit \
	-- "return name[0] && name[0] != '.' && !strchr(name, '/');" 'return name[0];'

# background jobs
mutant engine-takes-a-job-with-another-token engine_answers.sh \
	-- 'if (strncmp(fields[COMMENT], mark, strlen(mark)) == 0 &&' 'if ('
mutant engine-takes-a-job-that-slurm-refuses engine_back.sh \
	-- '!was_refused(fields[STATE], fields[REASON]) &&' ''
mutant engine-believes-a-controller-that-has-crashed engine_answers.sh \
	-- 'record = engine_state_record_untold(job->id, job->end_s);' 'record = -1;'
mutant engine-believes-the-record-of-a-job-that-was-told-to-end engine_answers.sh \
	-- 'if (status < 0 || was_told ||' 'if (status < 0 ||'
mutant engine-submits-again-without-a-look engine_answers.sh \
	-- 'r = submission_find(job->token, FIND_MS, ret_id); if (r == SUBMISSION_NONE) {' \
	'r = SUBMISSION_NONE; {'
mutant engine-submits-a-line-again engine_answers.sh \
	-- 'r = is_new ? SUBMISSION_NONE' 'r = true ? SUBMISSION_NONE'
mutant engine-submits-a-job-whose-output-is-lost engine_answers.sh \
	-- 'r = userfile_check_output(path, why); if (r == 0 &&' 'r = 0; if (false &&'
mutant engine-forgets-the-status-in-its-script engine_answers.sh \
	-- '"echo \"$token $status$told\" >\"$record\" 2>/dev/null\n"' ''
mutant engine-shows-the-log-of-another-job engine_answers.sh \
	-- 'if (reader->fd < 0 && !engine_state_has_old_log(reader->id))' 'if (reader->fd < 0)'
mutant engine-follow-forgets-the-status engine_answers.sh \
	-- 'return job->status < 0 ? EXIT_NOT_DONE : job->status;' 'return 0;'
mutant engine-the-last-status-counts engine_answers.sh \
	-- 'if (status > waiting.status)' 'if (true)'
mutant engine-waits-for-unknown-jobs engine_answers.sh \
	-- 'if (!known.jobs[i].is_unknown) continue;' 'continue;'
mutant engine-cancels-without-a-question engine_answers.sh \
	-- 'if (settings->verb.yes || targets.chosen < 2) return true; for' 'return true; for'
mutant engine-sends-a-signal-that-no-script-takes engine_answers.sh \
	-- '{ SIGKILL, SIGPROF },' '{ SIGKILL, SIGKILL },'
mutant engine-takes-the-first-of-several-jobs engine_answers.sh \
	-- "if (found) { diag(\"'%s' means several jobs, as" \
	"if (false) { diag(\"'%s' means several jobs, as"

# the foreground
mutant engine-waits-for-ever engine_answers.sh \
	-- 'if (reason->is_for_ever' 'if (false && reason->is_for_ever'
mutant engine-leaves-srun-behind engine_answers.sh \
	-- '(void)prctl(PR_SET_PDEATHSIG, SIGQUIT);' ''
mutant engine-max-wait-leaves-srun engine_answers.sh \
	-- 'if (fg->srun.pid) (void)kill(fg->srun.pid, SIGTERM);' ''
mutant engine-signal-for-another-step engine_answers.sh \
	-- 'if (fg->has_step)' 'if (false)'
mutant engine-doubtful-success-is-a-success engine_answers.sh \
	-- 'return status ? status : EXIT_MISUSE;' 'return status;'
mutant engine-removes-output-of-the-command srun_messages \
	-- 'if (!*begins_line || !end ||' 'if (!end ||'

# on the node
mutant engine-command-without-gpus-sees-all engine_node.sh \
	-- 'if (!*gpus) SET("CUDA_VISIBLE_DEVICES", "", true);' ''
mutant engine-nothing-is-killed-at-the-limit engine_node.sh \
	-- 's->kill_at_ms = now_ms + s->order->grace_ms;' 's->kill_at_ms = INT64_MAX;'
mutant engine-retries-what-was-told-to-end engine_node.sh \
	-- '.was_told = s->was_told,' '.was_told = false,' \
	-- 'while (!s->was_told && !s->is_at_limit && clock_boot_ms() < until_ms)' \
	'while (clock_boot_ms() < until_ms)' \
	-- 'return !s->was_told && !s->is_at_limit;' 'return true;'
mutant engine-node-skips-words-that-it-does-not-know engine_words engine_node.sh \
	-- 'if (read_word(*words, ret) == 0) continue;' 'if (read_word(*words, ret) != 1) continue;'

# a batch
mutant engine-batch-in-a-folder-of-all engine_answers.sh \
	-- 'return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EACCES;' 'return 0;'
mutant engine-tries-a-cancelled-line-again engine_answers.sh \
	-- 'member->observer.is_stopped = is_stopped;' '(void)is_stopped;'
mutant engine-member-outlives-its-parent engine_answers.sh \
	-- '(void)prctl(PR_SET_PDEATHSIG, SIGKILL); return getppid() == (pid_t)pid' \
	'return getppid() == (pid_t)pid'

# the time of a probe
mutant a-lease-of-another-boot-makes-probes-too-old turn \
	-- 'if (seen->is_over && seen->is_of_this_boot) { gpu->has_dead = true;' \
	'if (seen->is_over) { gpu->has_dead = gpu->has_dead || seen->is_of_this_boot;'

# a choice of GPUs
mutant a-choice-of-slots turn choosing.sh \
	-- 'return uuid[0] ? snapshot_find_gpu(view, uuid) : -1;' 'return (int)slot;'
mutant a-preference-of-slots turn choosing.sh \
	-- 'int slot = find_chosen(broker, choice->prefer.slots[i]);' \
	'int slot = choice->prefer.slots[i];'
mutant a-lease-is-given-back-by-slots turn \
	-- 'lease ? &lease->seen : &debt->gpus, is_left' '&debt->gpus, is_left'
mutant a-gpu-that-is-missing-is-not-looked-for choosing.sh \
	-- 'verdict->kind == VERDICT_GPU && verdict->there < verdict->wanted;' 'false;'
mutant a-time-of-a-lease-is-not-bounded turn \
	-- 'if (field->kind == RECORD_MS && value > RECORD_MS_MOST) value = RECORD_MS_MOST;' ''

# owners outside the FIFO rule, and namespaces
mutant an-unseen-owner-is-dead liveness lease_only.sh \
	-- 'job->left_behind = job->owner; job->rest = LIVENESS_LIVES;' ''
mutant an-unseen-owner-is-not-sought liveness lease_only.sh \
	-- 'state = owner_seek(&job->owner, NULL, &job->pidfd);' 'state = OWNER_UNDECIDED;'
mutant a-watchdog-that-ends-gives-nothing-back lease_only.sh \
	-- '(void)!end_recorder_give_back(&opened.recorder, now_ms + LOCK_MS);' ';'
mutant a-shell-without-a-watchdog lease_only.sh \
	-- 'if (settings->request.shell || settings->request.adopt_pid) return true;' ''
mutant proc-of-another-namespace namespaces containers.sh \
	-- 'return sscanf(text, "%d", &named) == 1 && named == getpid();' 'return true;'
mutant users-as-inside namespaces containers.sh \
	-- 'return namespaces_map_user(own.user_map, uid);' 'return uid;'
mutant a-lost-lease-is-no-step run.sh \
	-- 'if (!find_lost_job(queue, view, &own, token))' 'if (true)'
mutant a-stopped-step-holds-the-turn step_lock run.sh \
	-- 'if (now_ms - lock->stuck_since_ms >= TURN_STUCK_MS) return 0;' ''

echo "1..$number"
[ "$missed" -eq 0 ]

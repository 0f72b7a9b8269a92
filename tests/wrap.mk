# Which system calls a test replaces.
$(B)/tests/test_owner: WRAP = syscall openat access
$(B)/tests/test_proc: WRAP = rights_are_lent rights_as_user_begin rights_as_user_end openat \
	fstatat readdir
$(B)/tests/test_liveness: WRAP = namespaces_sees_all
$(B)/tests/test_terminate: WRAP = namespaces_sees_all
$(B)/tests/test_ticket: WRAP = pread write lseek
$(B)/tests/test_queue: WRAP = pread
$(B)/tests/test_live_fifo: WRAP = openat
$(B)/tests/test_fifo: WRAP = clock_real_ms
$(B)/tests/test_queue_sweep: WRAP = fallocate
$(B)/tests/test_lease: WRAP = pread
$(B)/tests/test_commit: WRAP = flock pwrite
$(B)/tests/test_statedir: WRAP = fstatfs stat fchmodat
$(B)/tests/test_history: WRAP = flock write openat
$(B)/tests/test_fdio: WRAP = pread pwrite openat
$(B)/tests/test_watch: WRAP = timerfd_create
$(B)/tests/test_token_index: WRAP = calloc
$(B)/tests/test_step_lock: WRAP = flock
$(B)/tests/test_gpu_hours: WRAP = clock_real_ms
$(B)/tests/test_turn: WRAP = flock pread
$(B)/tests/test_batch_file: WRAP = inotify_init1 realpath clock_real_ms
$(B)/tests/test_batch_journal: WRAP = poll clock_boot_ms

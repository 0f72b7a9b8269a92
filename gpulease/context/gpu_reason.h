/*
 * The state of a GPU as a word, and what keeps the GPU from being leased as a sentence without its
 * subject: "is paused by alice: fan".  --status, --doctor, JSON and the reason for waiting
 * (wait_reason.h) use the same sentences.
 */
#ifndef GPULEASE_GPU_REASON_H
#define GPULEASE_GPU_REASON_H

#include "snapshot.h"

/* Returns the word for a state in --status and JSON: "idle", "leased" … */
const char *state_word(enum gpu_state state);

/*
 * Appends what keeps GPU @slot from being free; nothing if it is free.  Returns how many bytes of
 * the sentence are its leading "is ": a line that begins with "GPU 3:" leaves them out.  Returns 0
 * if the sentence begins with something else.
 */
size_t explain_gpu(const struct snapshot *view, unsigned slot, struct text *out);

/* Likewise, as if the GPU were in @state, which a verdict may have found at another moment. */
size_t explain_gpu_state(const struct snapshot *view, unsigned slot, enum gpu_state state,
	struct text *out);

#endif

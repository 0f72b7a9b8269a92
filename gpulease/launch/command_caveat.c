#include "command_caveat.h"
#include "diag.h"

/* What happens to CUDA_VISIBLE_DEVICES when a program starts another one. */
enum caveat_kind {
	CAVEAT_NONE,   /* it is passed on */
	CAVEAT_KEEP,   /* it is dropped, except with -E */
	CAVEAT_LOGIN,  /* it is dropped with -l, or - */
	CAVEAT_ENGINE, /* options of a container engine decide instead */
	CAVEAT_PODMAN, /* the same */
	CAVEAT_ASKS,   /* it only asks Slurm */
};

/* The message for each kind, after the name of the program. */
static const char *const remedies[] = {
	[CAVEAT_KEEP] =
		"drops CUDA_VISIBLE_DEVICES (unless sudoers keeps it) and the tag of the "
		"lease: write sudo gpulease ..., or sudo "
		"--preserve-env=CUDA_VISIBLE_DEVICES ...",
	[CAVEAT_LOGIN] = "drops CUDA_VISIBLE_DEVICES for a login shell: leave out the -, "
			 "or start gpulease as that user, see gpulease-job(7)",
	[CAVEAT_ENGINE] = "write --gpus '\"device={uuids}\"', or use gpulease "
			  "--docker-args, see gpulease-container(7)",
	[CAVEAT_PODMAN] = "use gpulease --docker-args podman, see gpulease-container(7)",
	[CAVEAT_ASKS] = "only asks Slurm, and now waits for a GPU to do so: leave out "
			"gpulease",
};

/*
 * A program that starts another one.  It has arrays, because pointers would have to be relocated.
 */
struct starter {
	char name[9];
	char letters[14]; /* its short options that take a value */
	uint8_t operands; /* before the command */
	uint8_t kind;     /* enum caveat_kind */
};

static const struct starter starters[] = {
	{ "env", "uCS", 0, CAVEAT_NONE },
	{ "nice", "n", 0, CAVEAT_NONE },
	{ "time", "fo", 0, CAVEAT_NONE },
	{ "nohup", "", 0, CAVEAT_NONE },
	{ "timeout", "ks", 1, CAVEAT_NONE },
	{ "sudo", "CDghpRrTtuU", 0, CAVEAT_KEEP },
	{ "su", "cCgGsw", 1, CAVEAT_LOGIN },
	{ "runuser", "cCgGsuw", 1, CAVEAT_LOGIN },
	{ "docker", "", 0, CAVEAT_ENGINE },
	{ "nerdctl", "", 0, CAVEAT_ENGINE },
	{ "podman", "", 0, CAVEAT_PODMAN },
	{ "sacct", "", 0, CAVEAT_ASKS },
	{ "sbatch", "", 0, CAVEAT_ASKS },
	{ "scancel", "", 0, CAVEAT_ASKS },
	{ "scontrol", "", 0, CAVEAT_ASKS },
	{ "sinfo", "", 0, CAVEAT_ASKS },
	{ "squeue", "", 0, CAVEAT_ASKS },
};

/*
 * The long options that take a value in one of these programs.  The other programs that have them
 * take a value, too.
 */
static const char longs[] =
	" unset chdir adjustment format output kill-after signal group host prompt chroot "
	"role type user command shell ";

static const struct starter *starter_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(starters); i++)
		if (strcmp(text_base_name(word), starters[i].name) == 0)
			return &starters[i];
	return NULL;
}

/* Whether the long option @word, without its value, is in @list. */
static bool list_has(const char *list, const char *word)
{
	char name[32];

	(void)snprintf(name, sizeof(name), " %.*s ", (int)strcspn(word, "="), word);
	return strstr(list, name) != NULL;
}

/* --- programs that pass arguments on ------------------------------------------------ */

/* Whether @word is, or contains, the option that decides for this kind: -E; or -l and `-`. */
static bool option_is_meant(const struct starter *starter, const char *word)
{
	bool is_login = starter->kind == CAVEAT_LOGIN;

	if (word[1] == '-')
		return strcmp(word, is_login ? "--login" : "--preserve-env") == 0;
	return word[1] ? memchr(word + 1, is_login ? 'l' : 'E',
				 strcspn(word + 1, starter->letters)) != NULL
		       : is_login;
}

/* Whether the value of the option @word is the next word. */
static bool option_takes_next(const struct starter *starter, const char *word)
{
	const char *letter;

	if (word[1] == '-')
		return !strchr(word, '=') && list_has(longs, word + 2);
	letter = strpbrk(word + 1, starter->letters);
	return letter && !letter[1];
}

/*
 * Returns the command that @starter, the first of @words, starts.  Sets *@ret_is_meant if
 * option_is_meant() is true for one of its options.
 */
static char *const *starter_skip(
	const struct starter *starter, char *const *words, bool *ret_is_meant)
{
	unsigned operands = starter->operands;

	*ret_is_meant = false;
	for (words++; *words; words++) {
		const char *word = *words;

		if (strcmp(word, "--") == 0)
			return words + 1;
		if (word[0] == '-') {
			*ret_is_meant |= option_is_meant(starter, word);
			/* runuser -u USER: the next operand is the command */
			if (word[1] == 'u')
				operands = 0;
			if (option_takes_next(starter, word) && words[1])
				words++;
		} else if (!strchr(word, '=') && !operands--) {
			break;
		}
	}
	return words;
}

/* --- engines of containers ----------------------------------------------------------- */

/* Whether an option of `docker run` asks for other GPUs than those of the lease. */
static bool option_asks_for_gpus(const char *word, const char *value)
{
	/* the engine counts GPUs as the machine does, not as the command sees them */
	if (list_has(" --gpus ", word))
		return !strstr(value, "{uuids}") && !strstr(value, "GPU-") &&
		       !strstr(value, "MIG-") && strcmp(value, "0") != 0;
	return list_has(" --device ", word) && strcmp(value, "nvidia.com/gpu=all") == 0;
}

/* Finds the options of `docker run`, `docker container run`, … that ask for GPUs. */
static const char *engine_find_option(char *const *words)
{
	/* the options of `run` without a value; an engine reads `--init=false`, too */
	static const char flags[] = " detach interactive tty publish-all quiet rm init "
				    "privileged read-only replace ";

	while (*words && strcmp(*words, "run") != 0)
		words++;
	for (words += *words != NULL; *words && **words == '-'; words++) {
		const char *word = *words, *equals = strchr(word, '='), *value;
		size_t size = strspn(word, "-ditPq");

		/* flags, or a letter with its value in the same word */
		if (word[1] == '-' ? list_has(flags, word + 2)
				   : !word[size] || word[size + 1])
			continue;
		value = equals && word[1] == '-' ? equals + 1 : words[1];
		if (!value)
			break;
		if (option_asks_for_gpus(word, value))
			return word;
		words += value == words[1];
	}
	return NULL;
}

/* --- all of it --------------------------------------------------------------------- */

/* Whether @word, perhaps the text of a shell, starts gpulease. */
static bool word_starts_gpulease(const char *word)
{
	static const char name[] = "gpulease";
	const char *at = word;

	while ((at = strstr(at, name))) {
		bool is_begin = at == word || strchr("/ ", at[-1]);

		at += sizeof(name) - 1;
		if (is_begin && (!*at || *at == ' '))
			return true;
	}
	return false;
}

/* Whether the command takes care of the GPUs itself: it names the variable, or starts gpulease. */
static bool is_seen_to(char *const *words)
{
	for (; *words; words++)
		if (strstr(*words, "VISIBLE_DEVICES") || word_starts_gpulease(*words))
			return true;
	return false;
}

bool command_caveat(char *const *command, struct text *out)
{
	const struct starter *starter, *drops = NULL;
	const char *option = NULL;
	bool is_meant;

	if (!*command || !starter_find(*command) || is_seen_to(command))
		return false;
	while (*command && (starter = starter_find(*command))) {
		if (starter->kind == CAVEAT_ASKS) {
			drops = starter;
			break;
		}
		if (starter->kind >= CAVEAT_ENGINE) {
			option = engine_find_option(command);
			drops = option ? starter : NULL;
			break;
		}
		command = starter_skip(starter, command, &is_meant);
		if (starter->kind == (is_meant ? CAVEAT_LOGIN : CAVEAT_KEEP))
			drops = starter;
	}
	if (!drops)
		return false;
	text_addf(out, "%s%s ", drops->name, option ? ":" : "");
	if (option)
		text_addf(out, "%s asks for GPUs outside the lease: ", option);
	text_add(out, remedies[drops->kind]);
	return true;
}

void command_caveat_note(char *const *command)
{
	char words[256];
	struct text text = TEXT_ON(words);

	if (command_caveat(command, &text))
		note("%s", words);
}

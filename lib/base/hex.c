#include <errno.h>

#include "hex.h"

int hex_read(const char *text, size_t size, enum hex_case letters, uint64_t *ret)
{
	uint64_t number = 0;

	if (!size)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		int digit = hex_digit(text[i], letters);

		/* the highest 4 bits are in use: one more digit would drop them */
		if (digit < 0 || number >> 60)
			return -EINVAL;
		number = number << 4 | (uint64_t)digit;
	}
	*ret = number;
	return 0;
}

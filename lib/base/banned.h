/*
 * Functions that gpulease must not call; the comment after each names the replacement.  A call is
 * a compile error.  base.h includes this file last, after the system headers that declare them.
 */
#ifndef GPULEASE_BANNED_H
#define GPULEASE_BANNED_H

#include <stdio.h>
#include <string.h>

#define BANNED(name) banned_function_##name

#undef strcpy
#define strcpy BANNED(strcpy) /* snprintf, text_add */
#undef strcat
#define strcat BANNED(strcat) /* text_add */
#undef strncpy
#define strncpy BANNED(strncpy) /* snprintf */
#undef strncat
#define strncat BANNED(strncat) /* text_add */
#undef sprintf
#define sprintf BANNED(sprintf) /* snprintf, text_addf */
#undef vsprintf
#define vsprintf BANNED(vsprintf) /* vsnprintf */
#undef gets
#define gets BANNED(gets) /* fdio_read */
#undef strtok
#define strtok BANNED(strtok) /* strchrnul, parse_… */
#undef atoi
#define atoi BANNED(atoi) /* parse_u64 */
#undef atol
#define atol BANNED(atol) /* parse_u64 */
#undef strtol
#define strtol BANNED(strtol) /* parse_u64 */
#undef strtoul
#define strtoul BANNED(strtoul) /* parse_u64 */
#undef system
#define system BANNED(system) /* spawn */
#undef popen
#define popen BANNED(popen) /* spawn */
#undef usleep
#define usleep BANNED(usleep) /* watch */
#undef sleep
#define sleep BANNED(sleep) /* watch */

#endif

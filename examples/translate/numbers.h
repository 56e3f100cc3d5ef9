/* English and French names of the numbers from 0 to 999,999. */
#ifndef TRANSLATE_NUMBERS_H
#define TRANSLATE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NUMBER_LIMIT = 1000000, /* names exist for 0 .. NUMBER_LIMIT - 1 */
    NUMBER_NAME_SIZE = 96   /* bytes that hold every name in either language, the closing NUL included */
};

/* "seven hundred four", "ninety-nine", "one thousand": American, without "and". False outside 0 .. 999,999. */
bool number_in_english(int64_t value, char name[NUMBER_NAME_SIZE]);

/* "vingt et un", "soixante-dix-sept", "quatre-vingts", "deux cent mille": traditional spelling, UTF-8. False outside
   0 .. 999,999. */
bool number_in_french(int64_t value, char name[NUMBER_NAME_SIZE]);

#endif

/* Number names in English and French. */
#include "numbers.h"

#include <string.h>

static const char *const english_small[20] = {"zero",    "one",     "two",       "three",    "four",
                                              "five",    "six",     "seven",     "eight",    "nine",
                                              "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                              "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const english_tens[10] = {"",      "",      "twenty",  "thirty", "forty",
                                             "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const french_small[20] = {"zéro",     "un",     "deux",  "trois",    "quatre",   "cinq",    "six",
                                             "sept",     "huit",   "neuf",  "dix",      "onze",     "douze",   "treize",
                                             "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
/* 70 counts on from 60 and 90 from 80, so their words stand twice. */
static const char *const french_tens[10] = {"",          "",         "vingt",    "trente",       "quarante",
                                            "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"};

/* Appends a word, after a space unless the name is still empty. */
static void append_word(char *name, const char *word)
{
    if (name[0] != '\0') strcat(name, " ");
    strcat(name, word);
}

static void append_hyphenated(char *name, const char *word)
{
    strcat(name, "-");
    strcat(name, word);
}

static void append_english_below_1000(char *name, int value)
{
    if (value >= 100) {
        append_word(name, english_small[value / 100]);
        append_word(name, "hundred");
        value %= 100;
    }
    if (value >= 20) {
        append_word(name, english_tens[value / 10]);
        if (value % 10 != 0) append_hyphenated(name, english_small[value % 10]);
    } else if (value > 0) {
        append_word(name, english_small[value]);
    }
}

bool number_in_english(int64_t value, char name[NUMBER_NAME_SIZE])
{
    if (value < 0 || value >= NUMBER_LIMIT) return false;
    name[0] = '\0';
    if (value == 0) strcat(name, english_small[0]);
    if (value >= 1000) {
        append_english_below_1000(name, (int)(value / 1000));
        append_word(name, "thousand");
    }
    append_english_below_1000(name, (int)(value % 1000));
    return true;
}

/* 1 .. 99. takes_plural: nothing follows, so that 80 is "quatre-vingts". */
static void append_french_below_100(char *name, int value, bool takes_plural)
{
    if (value < 20) {
        append_word(name, french_small[value]);
        return;
    }
    int tens = value / 10;
    int rest = tens == 7 || tens == 9 ? value % 10 + 10 : value % 10;
    append_word(name, french_tens[tens]);
    bool has_et = tens < 8 && (rest == 1 || rest == 11);
    if (has_et) {
        append_word(name, "et");
        append_word(name, french_small[rest]);
    } else if (rest != 0) {
        append_hyphenated(name, french_small[rest]);
    } else if (tens == 8 && takes_plural) {
        strcat(name, "s");
    }
}

/* 1 .. 999. A round hundred takes its s, as 80 does, only where nothing follows: "deux cents", "deux cent mille". */
static void append_french_below_1000(char *name, int value, bool takes_plural)
{
    int hundreds = value / 100;
    if (hundreds > 1) append_word(name, french_small[hundreds]);
    if (hundreds > 0) append_word(name, hundreds > 1 && value % 100 == 0 && takes_plural ? "cents" : "cent");
    if (value % 100 != 0) append_french_below_100(name, value % 100, takes_plural);
}

bool number_in_french(int64_t value, char name[NUMBER_NAME_SIZE])
{
    if (value < 0 || value >= NUMBER_LIMIT) return false;
    name[0] = '\0';
    if (value == 0) strcat(name, french_small[0]);
    /* 1,000 is "mille", never "un mille". */
    if (value >= 2000) append_french_below_1000(name, (int)(value / 1000), false);
    if (value >= 1000) append_word(name, "mille");
    if (value % 1000 != 0) append_french_below_1000(name, (int)(value % 1000), true);
    return true;
}

/* The table of an archive's names. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/archive.h"

enum { bits = 12, most = 1 << bits, low = (1 << (bits + 2)) - 1, block = 4 };

/* FNV-1a's low bits. */
static unsigned fnv(unsigned hash, const char *text)
{
    for (; *text; text++) hash = ((hash ^ (unsigned char)*text) * 0x1b3) & low;
    return hash;
}

/* Two blocks that lead from one of its states to the same next one. */
static unsigned find_pair(unsigned state, char pair[2][block + 1])
{
    static char seen[low + 1][block + 1];
    memset(seen, 0, sizeof seen);
    for (int i = 0;; i++) {
        const char text[] = {(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676), 'x', '\0'};
        const unsigned next = fnv(state, text);
        memcpy(pair[0], seen[next], sizeof text);
        memcpy(pair[1], text, sizeof text);
        memcpy(seen[next], text, sizeof text);
        if (*pair[0]) return next;
    }
}

static int64_t longest_run(const rapt_names *names)
{
    int64_t longest = 0, run = 0;
    for (int64_t i = 0; i < names->slot_count; i++) {
        run = names->slots[i] < 0 ? 0 : run + 1;
        if (run > longest) longest = run;
    }
    return longest;
}

/* Names that all have one place in a table by FNV-1a, for which files were made that took minutes to load. */
Test(archive, names_that_were_chosen_to_collide_do_not)
{
    char pairs[bits][2][block + 1], name[bits * block + 1];
    unsigned state = 0xcbf29ce484222325 & low;
    rapt_names names = {0};
    for (int i = 0; i < bits; i++) state = find_pair(state, pairs[i]);
    for (int k = 0; k < most; k++) {
        *name = '\0';
        for (int i = 0; i < bits; i++) strcat(name, pairs[i][k >> i & 1]);
        cr_assert_eq(fnv(0xcbf29ce484222325 & low, name), state);
        cr_assert(rapt_names_add(&names, name, pairs));
    }
    cr_expect_lt(longest_run(&names), 300);
    for (int k = 0; k < most; k++) {
        *name = '\0';
        for (int i = 0; i < bits; i++) strcat(name, pairs[i][k >> i & 1]);
        cr_assert_eq(rapt_names_find(&names, name), pairs);
        cr_expect_str_eq(names.entries[k].name, name, "the order is that of coming");
    }
    cr_expect_null(rapt_names_find(&names, ""));
    rapt_names_free(&names);
}

/* Nobody knows where a name is in another table, or in another run of the program. */
Test(archive, each_table_has_places_of_its_own)
{
    int64_t places[4] = {0};
    for (int i = 0; i < 4; i++) {
        char name[2] = "a";
        rapt_names names = {0};
        for (; *name <= 'p'; ++*name) cr_assert(rapt_names_add(&names, name, name));
        for (int64_t k = 0; k < names.slot_count; k++) places[i] = places[i] * 3 + names.slots[k];
        rapt_names_free(&names);
    }
    cr_expect(places[0] != places[1] || places[1] != places[2] || places[2] != places[3]);
}

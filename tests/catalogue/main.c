/* Prints the catalogue, whole or of what is named, as a table: catalogue [--brief | --names] [NAME...]. Fails where
 * something does not hold. */
#include <stdio.h>
#include <string.h>

#include "catalogue.h"

static void print_entry(const char *kind, const entry *e)
{
    printf("| %s %s | %lld |", kind, e->name, (long long)e->tried);
    for (int i = 0; i < figure_count; i++) {
        if (e->worst[i] < 0)
            printf(" |");
        else
            printf(e->worst[i] == 0 ? " %g |" : " %.0e |", e->worst[i]);
    }
    printf("\n");
    fflush(stdout);
}

/* Letters to be changed, put in or left out (Levenshtein 1966). */
static int distance(const char *a, const char *b)
{
    enum { most = 64 };
    int row[most + 1], width = (int)strnlen(b, most);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int before = row[0];
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int change = before + (a[i - 1] != b[j - 1]);
            before = row[j];
            if (row[j - 1] + 1 < change) change = row[j - 1] + 1;
            row[j] = before + 1 < change ? before + 1 : change;
        }
    }
    return row[width];
}

static bool is_near(const char *name, const char *word)
{
    return strstr(name, word) || distance(word, name) <= 2;
}

static bool is_known(const char *word)
{
    for (int i = 0; catalogue_name(i); i++)
        if (strcmp(catalogue_name(i), word) == 0) return true;
    fprintf(stderr, "catalogue: there is no op or layer '%s'", word);
    bool any = false;
    for (int i = 0; catalogue_name(i); i++) {
        if (!is_near(catalogue_name(i), word)) continue;
        fprintf(stderr, "%s%s", any ? ", " : "; near it: ", catalogue_name(i));
        any = true;
    }
    fprintf(stderr, any ? "\n" : "; --names lists all\n");
    return false;
}

static bool is_wanted(int i, int count, char *const *names)
{
    for (int k = 0; k < count; k++)
        if (strcmp(names[k], catalogue_name(i)) == 0) return true;
    return count == 0;
}

static int print_names(void)
{
    for (int i = 0; catalogue_name(i); i++) printf("%s %s\n", catalogue_kind(i), catalogue_name(i));
    return 0;
}

static int print_catalogue(bool brief, int count, char *const *names)
{
    int64_t tried = 0, failures = 0, listed = 0;
    printf("| what | cases | values | gradient | second order | forward mode | float32 "
           "|\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; catalogue_name(i); i++) {
        if (!is_wanted(i, count, names)) continue;
        entry e = catalogue_check(i, brief);
        if (e.cases < fewest_cases) entry_fail(&e, "%lld cases, fewer than %d", (long long)e.cases, fewest_cases);
        print_entry(catalogue_kind(i), &e);
        tried += e.tried;
        failures += e.failures;
        listed++;
    }
    printf("\n%lld listed, %lld cases, %lld failures\n", (long long)listed, (long long)tried, (long long)failures);
    return failures > 0;
}

int main(int count, char **arguments)
{
    const bool brief = count > 1 && strcmp(arguments[1], "--brief") == 0;
    if (count > 1 && strcmp(arguments[1], "--names") == 0) return print_names();
    char *const *names = arguments + 1 + brief;
    count -= 1 + brief;
    bool known = true;
    for (int k = 0; k < count; k++) known &= is_known(names[k]);
    return known ? print_catalogue(brief, count, names) : 2;
}

/* The stream of programs: lines of text, with the numbers of a tensor as raw float64 after its line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

static void broken(const char *what)
{
    fprintf(stderr, "compare: the stream of programs is broken: %s\n", what);
    exit(1);
}

static void read_numbers(FILE *stream, record *r)
{
    int64_t shape[RAPT_MAX_RANK];
    int rank = record_integers(r, "shape", shape, RAPT_MAX_RANK);
    r->numbers = array_new(rank, shape);
    size_t count = (size_t)r->numbers.count;
    if (fread(r->numbers.data, sizeof(double), count, stream) != count) broken("numbers are missing");
}

static record *add_record(program *p)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        p->records = realloc(p->records, (size_t)p->capacity * sizeof *p->records);
        if (!p->records) broken("no memory");
    }
    p->records[p->count] = (record){0};
    return &p->records[p->count++];
}

/* How many values the record makes. */
static int64_t values_of(const record *r)
{
    return record_is(r, "input") ? 1 : record_is(r, "step") ? record_integer(r, "gives") : 0;
}

static void check_size(const program *p)
{
    int64_t values = 0, steps = 0;
    for (int i = 0; i < p->count; i++) {
        values += values_of(&p->records[i]);
        steps += record_is(&p->records[i], "step");
    }
    if (values > most_values || steps > most_modules) broken("a program is too long");
}

bool program_read(FILE *stream, program *p)
{
    *p = (program){0};
    char *line = NULL;
    size_t size = 0;
    for (ssize_t length; (length = getline(&line, &size, stream)) > 0;) {
        line[length - 1] = '\0'; /* instead of the end of the line */
        if (strcmp(line, "end") == 0) {
            free(line);
            check_size(p);
            return true;
        }
        record *r = add_record(p);
        r->line = strdup(line);
        if (!r->line) broken("no memory");
        if (record_text(r, "shape")) read_numbers(stream, r);
    }
    free(line);
    if (p->count > 0) broken("the last program has no end");
    return false;
}

void program_free(program *p)
{
    for (int i = 0; i < p->count; i++) {
        free(p->records[i].line);
        array_free(&p->records[i].numbers);
    }
    free(p->records);
}

void program_print(const program *p)
{
    int64_t value = 0; /* that the line makes first */
    for (int i = 0; i < p->count; i++) {
        const record *r = &p->records[i];
        if (record_is(r, "expect")) continue;
        printf("%5lld  %s\n", (long long)value, r->line);
        value += values_of(r);
    }
}

bool record_is(const record *r, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(r->line, kind, length) == 0 && (r->line[length] == ' ' || r->line[length] == '\0');
}

const char *record_name(const record *r, char name[64])
{
    return sscanf(r->line, "%*s %63s", name) == 1 ? name : "";
}

const char *record_text(const record *r, const char *key)
{
    size_t length = strlen(key);
    for (const char *word = strchr(r->line, ' '); word; word = strchr(word + 1, ' '))
        if (strncmp(word + 1, key, length) == 0 && word[1 + length] == '=') return word + length + 2;
    return NULL;
}

bool record_says(const record *r, const char *key, const char *text)
{
    const char *value = record_text(r, key);
    size_t length = strlen(text);
    return value && strncmp(value, text, length) == 0 && (value[length] == ' ' || value[length] == '\0');
}

int64_t record_integer(const record *r, const char *key)
{
    const char *value = record_text(r, key);
    return value ? strtoll(value, NULL, 10) : 0;
}

double record_real(const record *r, const char *key)
{
    const char *value = record_text(r, key);
    return value ? strtod(value, NULL) : 0;
}

int record_integers(const record *r, const char *key, int64_t *to, int most)
{
    const char *value = record_text(r, key);
    int count = 0;
    while (value && *value != ' ' && *value != '\0') {
        char *end;
        if (count == most) broken("a list is too long");
        to[count++] = strtoll(value, &end, 10);
        if (end == value) broken("a list has no number");
        value = *end == ',' ? end + 1 : end;
    }
    return count;
}

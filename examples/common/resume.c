/* Runs that are stopped and go on from their checkpoint. */
#include "resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

const char *resume_path(const char *path, char text[resume_path_size])
{
    size_t used = 0;
    text[0] = '\0';
    for (; *path && used + sizeof "%FF" <= resume_path_size; path++) {
        const unsigned char byte = (unsigned char)*path;
        const bool is_plain = byte >= ' ' && byte <= '~' && byte != ',' && byte != '%';
        used += (size_t)sprintf(text + used, is_plain ? "%c" : "%%%02X", byte);
    }
    return text;
}

void resume_end_note(char *note, size_t size, uint64_t data, int64_t parts)
{
    size_t used = strlen(note);
    if (data) used += (size_t)snprintf(note + used, size - used, ", data with hash %016" PRIx64, data);
    if (parts > 0 && used < size) snprintf(note + used, size - used, ", parts %" PRId64, parts);
}

/* The length of the first part of a note; parts are set apart by ", ". */
static size_t part_length(const char *note)
{
    const char *end = strstr(note, ", ");
    return end ? (size_t)(end - note) : strlen(note);
}

/* A part of a note, whose number is read back exactly, as people write it: "dropout 0.1". */
static void put_part(char *text, size_t size, const char *part, size_t length)
{
    size_t word = length;
    while (word > 0 && part[word - 1] != ' ') word--;
    char *end, number[32] = "";
    const double value = strtod(part + word, &end);
    if (end != part + length || memchr(part + word, '.', length - word) == NULL)
        return (void)snprintf(text, size, "%.*s", (int)length, part);
    for (int digits = 1; digits <= 17 && strtod(number, NULL) != value; digits++)
        snprintf(number, sizeof number, "%.*g", digits, value);
    snprintf(text, size, "%.*s%s", (int)word, part, number);
}

/* "seed 0, not seed 1; hidden 64, not hidden 128; with parts 2" */
static void describe_difference(const char *theirs, const char *ours, char *text, size_t size)
{
    size_t used = 0;
    while (*theirs && *ours && used < size) {
        size_t a = part_length(theirs), b = part_length(ours);
        if (a != b || memcmp(theirs, ours, a) != 0) {
            char first[256], second[256];
            put_part(first, sizeof first, theirs, a);
            put_part(second, sizeof second, ours, b);
            used += (size_t)snprintf(text + used, size - used, "%s%s, not %s", used ? "; " : "", first, second);
        }
        theirs += theirs[a] ? a + 2 : a;
        ours += ours[b] ? b + 2 : b;
    }
    if ((*theirs || *ours) && used < size)
        snprintf(text + used, size - used, "%s%s %s", used ? "; " : "", *theirs ? "with" : "without",
                 *theirs ? theirs : ours);
}

bool resume_check_note(const char *path, const char *ours)
{
    rapt_archive *archive = rapt_load_safetensors(path);
    const char *theirs = archive ? rapt_archive_find_text(archive, "note") : NULL;
    bool same = theirs && strcmp(theirs, ours) == 0;
    char text[256] = "";
    if (theirs && !same) describe_difference(theirs, ours, text, sizeof text);
    if (archive && !same)
        rapt_fail(RAPT_ERROR_FORMAT, "resume", "'%.150s' is of another run%s%s", path, *text ? ": " : "", text);
    rapt_archive_free(archive);
    return same;
}

/* Of the run with this note; 0 where the file is none of its checkpoints. */
static int64_t count_steps(const char *path, const char *ours)
{
    RAPT_SCOPE;
    rapt_error_handler *handler = rapt_on_error(NULL);
    rapt_archive *archive = rapt_map_safetensors(path);
    const char *theirs = archive ? rapt_archive_find_text(archive, "note") : NULL;
    rapt_tensor *step = theirs && strcmp(theirs, ours) == 0 ? rapt_archive_find(archive, "step") : NULL;
    const int64_t steps = step && rapt_count(step) == 1 ? (int64_t)rapt_item(step) : 0;
    rapt_archive_free(archive);
    rapt_clear_error();
    rapt_on_error(handler);
    return steps;
}

bool resume_check_new(const char *path, const char *note, int64_t total)
{
    const int64_t steps = count_steps(path, note);
    return steps <= 0 || steps >= total ||
           rapt_fail(
               RAPT_ERROR_VALUE, "resume",
               "'%.150s' has step %lld of %lld of this run: --resume goes on from there; to begin anew, remove it",
               path, (long long)steps, (long long)total);
}

int resume_announce(int64_t step, int64_t total, int signal)
{
    fprintf(stderr, "stopped after step %lld of %lld; the same command with --resume goes on from there\n",
            (long long)step, (long long)total);
    return 128 + signal;
}

/* The trace of a profile as a file, in Chrome's trace event format (JSON). */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile.h"
#include "tensor/system.h"

enum { buffer_size = 1 << 16, most_of_event = 8 * rapt_shapes_size };

static pid_t writer; /* a forked child is another */

/* Texts of any bytes: those that are no printable ASCII go as \u00XX. */
static int put_text(char *to, int room, const char *text)
{
    int used = 0;
    for (; *text && used + 7 < room; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < 32 || byte > 126)
            used += snprintf(to + used, 7, "\\u%04x", byte);
        else {
            if (byte == '"' || byte == '\\') to[used++] = '\\';
            to[used++] = (char)byte;
        }
    }
    to[used] = '\0';
    return used;
}

static void flush(rapt_profile_file *file)
{
    if (getpid() == writer && fwrite(file->buffer, 1, file->used, file->stream) != file->used && !file->reason)
        file->reason = errno ? errno : EIO;
    file->used = 0;
}

static void append(rapt_profile_file *file, const char *text, size_t size)
{
    if (file->used + size > buffer_size) flush(file);
    memcpy(file->buffer + file->used, text, size);
    file->used += size;
}

bool rapt_profile_file_open(rapt_profile_file *file, const char *path)
{
    static const char head[] = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    char why[128];
    const size_t size = strlen(path) + 1;
    *file = (rapt_profile_file){.buffer = malloc(buffer_size + size)};
    if (!file->buffer) return rapt_fail(RAPT_ERROR_MEMORY, "profile_start", "no memory for a buffer of the file");
    file->stream = rapt_system_open_stream(path, "wb", false);
    if (!file->stream) {
        rapt_fail(RAPT_ERROR_FILE, "profile_start", "'%s' cannot be written: %s", path,
                  rapt_system_reason(errno, why, sizeof why));
        free(file->buffer);
        return false;
    }
    file->path = memcpy(file->buffer + buffer_size, path, size);
    setvbuf(file->stream, NULL, _IONBF, 0);
    writer = getpid();
    append(file, head, sizeof head - 1);
    return true;
}

void rapt_profile_file_add(rapt_profile_file *file, const rapt_observation *o, const char *category, int64_t begin,
                           int64_t duration, int thread, const rapt_shapes *shapes)
{
    char event[most_of_event], name[256], path[1024], in[2 * rapt_shapes_size], out[2 * rapt_shapes_size];
    put_text(name, sizeof name, o->name);
    put_text(path, sizeof path, o->path ? o->path : "");
    put_text(in, sizeof in, shapes ? shapes->in : "");
    put_text(out, sizeof out, shapes ? shapes->out : "");
    /* Microseconds, with a point in any locale. */
    const int size =
        snprintf(event, sizeof event,
                 "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %d, "
                 "\"ts\": %lld.%03lld, \"dur\": %lld.%03lld, \"args\": {\"module\": \"%s\", "
                 "\"in\": \"%s\", \"out\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f}}",
                 file->events++ ? "," : "", name, category, thread, (long long)begin / 1000, (long long)begin % 1000,
                 (long long)duration / 1000, (long long)duration % 1000, path, in, out, o->bytes, o->flops);
    append(file, event, (size_t)size);
}

/* Was nothing written, to a file that still has its name? */
static bool is_empty(const rapt_profile_file *file)
{
    const int descriptor = fileno(file->stream);
    struct stat status;
    bool is_there;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
           rapt_system_is_at(descriptor, file->path, &is_there) && is_there;
}

bool rapt_profile_file_close(rapt_profile_file *file)
{
    static const char end[] = "\n]}\n";
    if (!file->stream) return true;
    append(file, end, sizeof end - 1);
    flush(file);
    const bool leaves_nothing = file->reason && is_empty(file);
    if (fclose(file->stream) != 0 && !file->reason) file->reason = errno ? errno : EIO;
    file->stream = NULL;
    if (file->reason) {
        char why[128];
        if (leaves_nothing) remove(file->path);
        rapt_fail(RAPT_ERROR_FILE, "profile_stop", "'%.200s' could not be written whole: %s", file->path,
                  rapt_system_reason(file->reason, why, sizeof why));
    }
    free(file->buffer);
    return !file->reason;
}

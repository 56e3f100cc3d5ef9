/* Metrics as TensorBoard's event files: protocol buffers of Event in records with checksums (TFRecord). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "metrics.h"
#include "tensor/core.h"
#include "tensor/system.h"

uint32_t rapt_crc32c(const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0); /* reflected */
    }
    return ~crc;
}

/* The wire types of protocol buffers that are used here. */
enum { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

static void put_little_endian(rapt_metrics *m, uint64_t value, int bytes)
{
    unsigned char text[8];
    for (int i = 0; i < bytes; i++) text[i] = (unsigned char)(value >> 8 * i);
    rapt_metrics_put(m, text, (size_t)bytes);
}

/* Seven bits a byte, the lowest first; the highest bit says that more follow. */
static void put_varint(rapt_metrics *m, uint64_t value)
{
    unsigned char text[10];
    size_t length = 0;
    do {
        text[length++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    rapt_metrics_put(m, text, length);
}

static void put_key(rapt_metrics *m, unsigned field, unsigned wire_type)
{
    put_varint(m, field << 3 | wire_type);
}

static void put_text(rapt_metrics *m, unsigned field, const char *text)
{
    const size_t length = strlen(text);
    put_key(m, field, delimited);
    put_varint(m, length);
    rapt_metrics_put(m, text, length);
}

static void put_double(rapt_metrics *m, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, fixed64);
    put_little_endian(m, bits, 8);
}

static void put_float(rapt_metrics *m, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, fixed32);
    put_little_endian(m, bits, 4);
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value > 0x7f; value >>= 7) size++;
    return size;
}

/* Summary.Value { tag = 1; simple_value = 2 } as Summary.value = 1 */
static size_t value_size(const rapt_metric *metric)
{
    const size_t length = strlen(metric->name);
    return 1 + varint_size(length) + length + 1 + 4;
}

static void put_value(rapt_metrics *m, const rapt_metric *metric)
{
    put_key(m, 1, delimited);
    put_varint(m, value_size(metric));
    put_text(m, 1, metric->name);
    put_float(m, 2, (float)metric->value);
}

/* Checksums are masked, so that one over data that has one inside is not weak. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

/* Length (8 bytes) and its checksum (4) go before the event that begins at `start` + 12, its checksum behind it. */
static void close_record(rapt_metrics *m, size_t start)
{
    enum { header = 12 };
    if (m->lacks_memory) return;
    unsigned char *record = (unsigned char *)m->room + start;
    const size_t length = m->used - start - header;
    for (int i = 0; i < 8; i++) record[i] = (unsigned char)((uint64_t)length >> 8 * i);
    const uint32_t crc = masked(rapt_crc32c(record, 8));
    for (int i = 0; i < 4; i++) record[8 + i] = (unsigned char)(crc >> 8 * i);
    put_little_endian(m, masked(rapt_crc32c(record + header, length)), 4);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Room for the record's header, and Event { wall_time = 1 }; where the record begins. */
static size_t begin_event(rapt_metrics *m)
{
    const size_t start = m->used;
    rapt_metrics_put(m, (char[12]){0}, 12);
    put_double(m, 1, now());
    return start;
}

/* Event { wall_time = 1; step = 2; summary = 5 } */
static bool put_event_row(rapt_metrics *m, int64_t step, int count, const rapt_metric *list)
{
    size_t size = 0;
    for (int i = 0; i < count; i++) size += 1 + varint_size(value_size(&list[i])) + value_size(&list[i]);
    const size_t start = begin_event(m);
    put_key(m, 2, varint);
    put_varint(m, (uint64_t)step);
    put_key(m, 5, delimited);
    put_varint(m, size);
    for (int i = 0; i < count; i++) put_value(m, &list[i]);
    close_record(m, start);
    return true;
}

/* Event { wall_time = 1; step = 2; session_log = 7 }, with SessionLog { status = 1 } */
static void put_start(rapt_metrics *m, int64_t step)
{
    enum { status_start = 1 };
    const size_t start = begin_event(m);
    put_key(m, 2, varint);
    put_varint(m, (uint64_t)step);
    put_key(m, 7, delimited);
    put_varint(m, 2);
    put_key(m, 1, varint);
    put_varint(m, status_start);
    close_record(m, start);
}

/* At a start TensorBoard forgets what it has read of that step and later ones, but not at the first, which it takes for
 * the run's beginning: so there is one before it that takes nothing back. */
static bool put_restart(rapt_metrics *m, int64_t step)
{
    put_start(m, INT64_MAX);
    put_start(m, step);
    return rapt_metrics_write_room(m, "metrics_rewind");
}

/* A name that no other file of the folder has. */
static bool name_file(rapt_metrics *m)
{
    static _Atomic int count;
    char host[256], *path = NULL;
    rapt_system_host_name(host, sizeof host);
    const int length = asprintf(&path, "%s/events.out.tfevents.%lld.%s.%ld.%d", m->path, (long long)now(), host,
                                (long)getpid(), count++);
    if (length < 0) return rapt_fail(RAPT_ERROR_MEMORY, "metrics_open", "no memory for the name of a file");
    free(m->path);
    m->path = path;
    return true;
}

/* The file's first event: file_version = 3 */
static bool open_events(rapt_metrics *m, bool append)
{
    (void)append;
    struct stat status;
    if (!rapt_system_make_folder(m->path) &&
        (errno != EEXIST || stat(m->path, &status) != 0 || !S_ISDIR(status.st_mode)))
        return rapt_fail(RAPT_ERROR_FILE, "metrics_open", "'%s' is no folder and none can be made there: %s", m->path,
                         strerror(errno));
    if (!name_file(m) || !rapt_metrics_open_file(m, false)) return false;
    const size_t start = begin_event(m);
    put_text(m, 3, "brain.Event:2");
    close_record(m, start);
    return rapt_metrics_write_room(m, "metrics_open");
}

const rapt_metrics_kind rapt_event_kind = {.open = open_events, .rewind = put_restart, .put_row = put_event_row};

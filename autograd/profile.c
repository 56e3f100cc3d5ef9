/* The profile: where the time of all threads goes, by op and by module. */
#include "profile.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tensor/lock.h"

/* From its first observation to its last, in nanoseconds. */
typedef struct thread_time {
    int64_t first, last;
} thread_time;

static struct {
    bool runs;
    int64_t begin;
    rapt_profile_row *rows; /* of a hash table; name NULL: free */
    int64_t count, capacity;
    thread_time *threads;
    int thread_count, thread_capacity;
    int64_t calls, lost;
    rapt_profile_file file;
} profile;

static _Atomic uint64_t number;
static atomic_bool writes_file;
static _Atomic int64_t own_time; /* what observing took, in nanoseconds */
static RAPT_THREAD_LOCAL struct {
    uint64_t number; /* of the profile in which the thread has that place */
    int place;
} this_thread;

RAPT_LOCK(profile_lock, PROFILE)

int64_t rapt_profile_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

uint64_t rapt_profile_number(void)
{
    return atomic_load_explicit(&number, memory_order_relaxed);
}

bool rapt_profile_wants_shapes(void)
{
    return atomic_load_explicit(&writes_file, memory_order_relaxed);
}

const char *rapt_doing_name(rapt_doing doing)
{
    static const char *const names[RAPT_DOINGS] = {"forward", "backward", "walk", "step"};
    return names[doing];
}

/* --- rows, under the lock --- */

static int64_t hash_of(const rapt_profile_row *row)
{
    uint64_t hash = (uint64_t)row->doing;
    hash = (hash ^ (uint64_t)(uintptr_t)row->name) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ (hash >> 31) ^ (uint64_t)(uintptr_t)row->path) * UINT64_C(0xD6E8FEB86659FD93);
    return (int64_t)(hash >> 32);
}

/* The row with that key, or the free one where it would be. */
static rapt_profile_row *place_of(rapt_profile_row *rows, int64_t capacity, const rapt_profile_row *key)
{
    for (int64_t at = hash_of(key) % capacity;; at = (at + 1) % capacity) {
        rapt_profile_row *row = &rows[at];
        if (!row->name || (row->name == key->name && row->path == key->path && row->doing == key->doing)) return row;
    }
}

static bool make_room(void)
{
    if (2 * profile.count < profile.capacity) return true;
    const int64_t capacity = profile.capacity ? 2 * profile.capacity : 256;
    rapt_profile_row *rows = calloc((size_t)capacity, sizeof *rows);
    if (!rows) return false;
    for (int64_t i = 0; i < profile.capacity; i++)
        if (profile.rows[i].name) *place_of(rows, capacity, &profile.rows[i]) = profile.rows[i];
    free(profile.rows);
    profile.rows = rows;
    profile.capacity = capacity;
    return true;
}

/* NULL where there is no memory. */
static rapt_profile_row *row_of(const rapt_profile_row *key)
{
    if (!key->name || !make_room()) return NULL;
    rapt_profile_row *row = place_of(profile.rows, profile.capacity, key);
    if (!row->name) {
        *row = *key;
        profile.count++;
    }
    return row;
}

/* The calling thread's time, which has begun by then; NULL where there is no memory. */
static thread_time *time_of_thread(int64_t begin)
{
    if (this_thread.number == rapt_profile_number()) return &profile.threads[this_thread.place];
    if (profile.thread_count == profile.thread_capacity) {
        const int capacity = profile.thread_capacity ? 2 * profile.thread_capacity : 8;
        thread_time *threads = realloc(profile.threads, (size_t)capacity * sizeof *threads);
        if (!threads) return NULL;
        profile.threads = threads;
        profile.thread_capacity = capacity;
    }
    this_thread.number = rapt_profile_number();
    this_thread.place = profile.thread_count++;
    profile.threads[this_thread.place] = (thread_time){begin, begin};
    return &profile.threads[this_thread.place];
}

/* Under the lock, of the profile that runs. */
static void add(const rapt_observation *o, const rapt_profile_row *key, const rapt_shapes *shapes)
{
    rapt_profile_row *row = row_of(key);
    thread_time *thread = time_of_thread(o->begin);
    profile.calls++;
    if (!row || !thread) profile.lost++;
    if (row) {
        row->calls++;
        row->seconds += (double)(o->end - o->begin - o->inside) * 1e-9;
        row->bytes += o->bytes;
        row->flops += o->flops;
    }
    if (!thread) return;
    if (o->begin < thread->first) thread->first = o->begin;
    if (o->end > thread->last) thread->last = o->end;
    if (profile.file.stream)
        rapt_profile_file_add(&profile.file, o, rapt_doing_name(o->doing), o->begin - profile.begin, o->end - o->begin,
                              this_thread.place + 1, shapes);
}

void rapt_profile_add(const rapt_observation *o, const rapt_shapes *shapes)
{
    const rapt_profile_row key = {.doing = o->doing, .name = rapt_lasting_text(o->name), .path = o->path};
    profile_lock_take();
    if (profile.runs && o->profile == rapt_profile_number()) add(o, &key, shapes);
    profile_lock_give();
}

void rapt_profile_add_module(const rapt_module_place *place)
{
    if (!rapt_profile_wants_shapes() || !place->path) return;
    const rapt_observation o = {.name = place->path, .path = place->path};
    profile_lock_take();
    const thread_time *thread = profile.runs && place->begin >= profile.begin ? time_of_thread(place->begin) : NULL;
    if (thread && profile.file.stream)
        rapt_profile_file_add(&profile.file, &o, "module", place->begin - profile.begin,
                              rapt_profile_clock() - place->begin, this_thread.place + 1, NULL);
    profile_lock_give();
}

void rapt_profile_add_own(int64_t duration)
{
    atomic_fetch_add_explicit(&own_time, duration, memory_order_relaxed);
}

/* --- start, stop, what was measured --- */

/* The names of ops are few and are kept where memory for the times may end. */
static void forget(void)
{
    free(profile.rows);
    free(profile.threads);
    memset(&profile, 0, sizeof profile);
    atomic_store(&own_time, 0);
}

/* Under the lock. */
static bool stop(void)
{
    rapt_set_observer(RAPT_PROFILES, false);
    atomic_store(&writes_file, false);
    if (!profile.runs) return true;
    profile.runs = false;
    if (this_thread.number == rapt_profile_number()) profile.threads[this_thread.place].last = rapt_profile_clock();
    return rapt_profile_file_close(&profile.file);
}

/* Under the lock. */
static void begin(const rapt_profile_file *file)
{
    forget();
    profile.file = *file;
    profile.runs = true;
    profile.begin = rapt_profile_clock(); /* before any op of that number */
    atomic_fetch_add(&number, 1);
    time_of_thread(profile.begin);
    atomic_store(&writes_file, file->stream != NULL);
    rapt_set_observer(RAPT_PROFILES, true);
}

bool rapt_profile_start(const char *path)
{
    rapt_profile_file file = {0};
    rapt_error_hold(); /* its handler may ask for the lock */
    profile_lock_take();
    const bool good = stop() && (!path || rapt_profile_file_open(&file, path)); /* it may be the same file */
    if (good) begin(&file);
    profile_lock_give();
    rapt_error_release();
    return good;
}

bool rapt_profile_stop(void)
{
    rapt_error_hold();
    profile_lock_take();
    const bool good = stop();
    profile_lock_give();
    rapt_error_release();
    return good;
}

/* Under the lock. */
static rapt_profile_times times_of(void)
{
    rapt_profile_times t = {.threads = profile.thread_count, .calls = profile.calls, .lost = profile.lost};
    double *const seconds[RAPT_DOINGS] = {&t.forward, &t.backward, &t.walk, &t.step};
    const bool knows_me = profile.runs && this_thread.number == rapt_profile_number();
    for (int i = 0; i < profile.thread_count; i++) {
        const bool is_mine = knows_me && i == this_thread.place;
        const int64_t last = is_mine ? rapt_profile_clock() : profile.threads[i].last;
        t.all += (double)(last - profile.threads[i].first) * 1e-9;
    }
    for (int64_t i = 0; i < profile.capacity; i++) {
        const rapt_profile_row *row = &profile.rows[i];
        if (!row->name) continue;
        *seconds[row->doing] += row->seconds;
        t.flops += row->flops;
    }
    t.own = (double)atomic_load(&own_time) * 1e-9;
    t.outside = t.all - t.forward - t.backward - t.walk - t.step - t.own;
    return t;
}

rapt_profile_times rapt_profile_get_times(void)
{
    profile_lock_take();
    const rapt_profile_times times = times_of();
    profile_lock_give();
    return times;
}

rapt_profile_row *rapt_profile_copy(int64_t *count, rapt_profile_times *times)
{
    profile_lock_take();
    rapt_profile_row *rows = malloc((size_t)(profile.count + 1) * sizeof *rows);
    *count = 0;
    *times = times_of();
    for (int64_t i = 0; rows && i < profile.capacity; i++)
        if (profile.rows[i].name) rows[(*count)++] = profile.rows[i];
    profile_lock_give();
    if (!rows) rapt_fail(RAPT_ERROR_MEMORY, "profile_report", "no memory for a copy of what was measured");
    return rows;
}

/* --- the environment --- */

static pid_t process; /* which reports; its forked children do not */

static void report_at_exit(void)
{
    if (getpid() != process) return;
    const rapt_standing_error standing = rapt_error_put_aside(); /* none of the profile's */
    if (!rapt_profile_stop() || !rapt_profile_report(stderr)) rapt_warn("profile", "%s", rapt_error());
    rapt_error_put_back(standing);
}

static __attribute__((constructor(300))) void start_by_environment(void)
{
    const char *wanted = getenv("RAPT_PROFILE");
    if (!wanted || !*wanted || strcmp(wanted, "0") == 0) return;
    const size_t length = strlen(wanted);
    const bool is_file = length > 5 && strcmp(wanted + length - 5, ".json") == 0;
    if (!is_file && strcmp(wanted, "1") != 0) {
        rapt_warn("profile", "RAPT_PROFILE is '%s'; 1, or the name of a file that ends in .json, expected", wanted);
        return;
    }
    if (!rapt_profile_start(is_file ? wanted : NULL)) {
        rapt_warn("profile", "%s", rapt_error());
        rapt_clear_error();
        return;
    }
    process = getpid();
    atexit(report_at_exit);
}

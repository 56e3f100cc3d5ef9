/* The thread of a loader, which makes batches ahead into a ring. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"
#include "tensor/core.h"

struct rapt_prefetch {
    rapt_loader *loader;
    pid_t process; /* that the thread is of */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock */
    bool is_over;
    bool is_working;  /* makes a batch of the plan right now */
    int64_t epoch;    /* what is to be made */
    int64_t next;     /* its next item; −1: nothing */
    int count;        /* of batches in the ring */
    int first, ready; /* the oldest of them, and how many there are */
    rapt_made_batch *ring;
};

static bool has_work(const rapt_prefetch *p)
{
    return p->next >= 0 && p->ready < p->count;
}

/* Makes the next batch; with the lock held, but while it is made. */
static void make_one(rapt_prefetch *p)
{
    rapt_made_batch made;
    const int64_t epoch = p->epoch, first = p->next;
    p->is_working = true;
    pthread_mutex_unlock(&p->lock);
    rapt_loader_make(p->loader, epoch, first, &made);
    rapt_clear_error();
    pthread_mutex_lock(&p->lock);
    p->is_working = false;
    p->ring[(p->first + p->ready++) % p->count] = made;
    const int64_t end = first + made.batch.count;
    p->next = made.code == RAPT_OK && p->next >= 0 && end < p->loader->plan.items ? end : -1;
    pthread_cond_broadcast(&p->changed);
}

static void *work(void *context)
{
    rapt_prefetch *p = context;
    rapt_error_leave_to_others(true);
    pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        if (has_work(p))
            make_one(p);
        else
            pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

rapt_prefetch *rapt_prefetch_new(rapt_loader *loader, int count)
{
    const char *op = "loader";
    rapt_prefetch *p = calloc(1, sizeof *p);
    rapt_made_batch *ring = calloc((size_t)count, sizeof *ring);
    if (p && ring) {
        *p = (rapt_prefetch){.loader = loader, .process = getpid(), .next = -1, .count = count, .ring = ring};
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->changed, NULL);
        const int status = pthread_create(&p->thread, NULL, work, p);
        if (status == 0) return p;
        rapt_fail(RAPT_ERROR_MEMORY, op, "no thread to make batches ahead: %s", strerror(status));
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->lock);
    }
    rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %d batches made ahead", count);
    free(ring);
    free(p);
    return NULL;
}

bool rapt_prefetch_is_here(const rapt_prefetch *prefetch)
{
    return prefetch->process == getpid();
}

void rapt_prefetch_stop(rapt_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->lock);
    prefetch->next = -1;
    while (prefetch->is_working) pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    for (; prefetch->ready > 0; prefetch->ready--) {
        rapt_loader_drop(&prefetch->ring[prefetch->first]);
        prefetch->first = (prefetch->first + 1) % prefetch->count;
    }
    pthread_mutex_unlock(&prefetch->lock);
}

void rapt_prefetch_free(rapt_prefetch *prefetch)
{
    if (!prefetch) return;
    rapt_prefetch_stop(prefetch);
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_over = true;
    pthread_cond_broadcast(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
    pthread_join(prefetch->thread, NULL);
    pthread_cond_destroy(&prefetch->changed);
    pthread_mutex_destroy(&prefetch->lock);
    free(prefetch->ring);
    free(prefetch);
}

/* With the lock held. */
static void make_from(rapt_prefetch *prefetch, int64_t epoch, int64_t first)
{
    prefetch->epoch = epoch;
    prefetch->next = first;
    pthread_cond_broadcast(&prefetch->changed);
}

void rapt_prefetch_start(rapt_prefetch *prefetch, int64_t epoch, int64_t first)
{
    pthread_mutex_lock(&prefetch->lock);
    make_from(prefetch, epoch, first);
    pthread_mutex_unlock(&prefetch->lock);
}

rapt_made_batch rapt_prefetch_take(rapt_prefetch *prefetch, int64_t epoch, int64_t first)
{
    pthread_mutex_lock(&prefetch->lock);
    if (prefetch->ready == 0 && prefetch->next < 0 && !prefetch->is_working) make_from(prefetch, epoch, first);
    while (prefetch->ready == 0) pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    const rapt_made_batch made = prefetch->ring[prefetch->first];
    prefetch->first = (prefetch->first + 1) % prefetch->count;
    prefetch->ready--;
    pthread_cond_broadcast(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
    return made;
}

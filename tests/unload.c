/* A program that loads the library, or a plugin that has it in it, computes in a thread, unloads it, and goes on: the
 * thread ends behind it, and the process forks. unload LIBRAPT.SO */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { times = 3, float32 = 0 };

typedef struct rapt_tensor rapt_tensor;
typedef rapt_tensor *function_of_shape(int dtype, int rank, const int64_t *shape);
typedef rapt_tensor *function_of_two(rapt_tensor *a, rapt_tensor *b);

typedef struct state {
    void *handle;
    pthread_barrier_t computed, unloaded;
    int failed;
} state;

static void *compute(void *context)
{
    state *s = context;
    function_of_shape *ones;
    function_of_two *matmul;
    *(void **)&ones = dlsym(s->handle, "rapt_ones");
    *(void **)&matmul = dlsym(s->handle, "rapt_matmul");
    rapt_tensor *a = ones ? ones(float32, 2, (const int64_t[]){300, 300}) : NULL;
    s->failed = !a || !matmul || !matmul(a, a);
    pthread_barrier_wait(&s->computed);
    pthread_barrier_wait(&s->unloaded);
    return NULL;
}

static int load_and_unload(const char *path)
{
    state s = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!s.handle) {
        fprintf(stderr, "unload: %s\n", dlerror());
        return 1;
    }
    pthread_barrier_init(&s.computed, NULL, 2);
    pthread_barrier_init(&s.unloaded, NULL, 2);
    pthread_t thread;
    if (pthread_create(&thread, NULL, compute, &s) != 0) return 1;
    pthread_barrier_wait(&s.computed);
    dlclose(s.handle);
    pthread_barrier_wait(&s.unloaded);
    pthread_join(thread, NULL);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 1;
    waitpid(child, &status, 0);
    return s.failed || status != 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: unload LIBRAPT.SO\n");
        return 2;
    }
    int bad = 0;
    for (int i = 0; i < times; i++) bad |= load_and_unload(argv[1]);
    return bad;
}

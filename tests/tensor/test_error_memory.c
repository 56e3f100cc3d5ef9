/* Errors where there is no memory even for a message. */
#include "expect.h"

#include <pthread.h>
#include <stdio.h>

#include "failing_malloc.h"
#include "tensor/core.h"

/* What a thread hears of a failure when there is no memory. */
typedef struct heard {
    bool made_a_tensor; /* before */
    rapt_error_code code;
    char message[128], later[128];
} heard;

static void *fail_without_memory(void *argument)
{
    heard *h = argument;
    if (h->made_a_tensor) {
        RAPT_SCOPE;
        rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    }
    fail_malloc(0, true);
    rapt_fail(RAPT_ERROR_FILE, "op", "number %d", 7);
    fail_malloc(-1, false);
    h->code = rapt_error_get_code();
    snprintf(h->message, sizeof h->message, "%s", rapt_error());
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_FILE, "op", "number %d", 8);
    snprintf(h->later, sizeof h->later, "%s", rapt_error());
    return NULL;
}

Test(error_memory, the_code_is_right_and_the_message_too_where_a_tensor_was_made)
{
    for (int made = 0; made < 2; made++) {
        heard h = {.made_a_tensor = made};
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, fail_without_memory, &h), 0);
        pthread_join(thread, NULL);
        cr_expect_eq(h.code, RAPT_ERROR_FILE);
        cr_expect_str_eq(h.message, made ? "op: number 7" : "rapt: no memory for the message of an error");
        cr_expect_str_eq(h.later, "op: number 8");
    }
}

/* --- scopes that there is no memory for --- */

static int64_t references(const rapt_tensor *tensor)
{
    return atomic_load(&tensor->references);
}

/* Of which the test has a share beside that of the scope. */
static rapt_tensor *watched(void)
{
    return rapt_retain(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2)));
}

typedef struct scope_trial {
    int count;                 /* of scopes inside each other; the first of several has memory */
    bool no_error, none_early; /* has none of them left an error, or dropped a tensor of the block around? */
    bool dropped, kept, later; /* did an end drop what it should, keep hand it on, a scope begun later work? */
} scope_trial;

/* In a thread, whose first scopes these are. */
static void *begin_without_memory(void *argument)
{
    scope_trial *t = argument;
    const int owners = t->count > 1 ? 1 : 2; /* of what the outermost scope dropped, or could not */
    rapt_tensor *outside = watched();
    if (t->count == 1) fail_malloc(0, true);
    const rapt_scope scope = rapt_scope_begin();
    fail_malloc(0, true);
    for (int i = 1; i < t->count; i++) rapt_scope_begin();
    fail_malloc(-1, false);
    t->no_error = !rapt_error();
    rapt_tensor *mine = watched(), *kept = rapt_keep(watched());
    const rapt_scope inner = rapt_scope_begin();
    rapt_tensor *inside = watched();
    rapt_scope_end(inner);
    t->none_early = references(outside) == 2 && references(mine) == 2;
    t->later = references(inside) == 1;
    rapt_scope_end(scope);
    t->dropped = references(outside) == 2 && references(mine) == owners;
    t->kept = references(kept) == owners;
    t->no_error = t->no_error && !rapt_error();
    rapt_tensor *const all[] = {outside, mine, kept, inside};
    for (int i = 0; i < 4; i++) rapt_release(all[i]);
    return NULL;
}

/* Nothing fails, so no error stands: a first scope is then one with none, the hundredth one with the others. */
Test(error_memory, a_scope_without_memory_is_one_with_the_scope_around)
{
    for (int count = 1; count <= 100; count += 99) {
        scope_trial t = {.count = count};
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, begin_without_memory, &t), 0);
        pthread_join(thread, NULL);
        cr_expect(t.no_error, "%d scopes", count);
        cr_expect(t.none_early, "%d scopes", count);
        cr_expect(t.dropped, "%d scopes", count);
        cr_expect(t.kept, "%d scopes", count);
        cr_expect(t.later, "%d scopes", count);
    }
}

/* Mistakes with scopes and shares: who owns a tensor, and until when. */
#include <pthread.h>

#include "mistakes.h"

static rapt_tensor *kept;

static rapt_tensor *without_keep(void)
{
    RAPT_SCOPE;
    return rapt_exp(ones(RAPT_SHAPE(2, 3)));
}

static bool use_after_scope(void)
{
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        x = rapt_exp(ones(RAPT_SHAPE(2, 3)));
    }
    return !rapt_neg(x);
}

static bool return_without_keep(void)
{
    return rapt_item(total(without_keep())) != 6;
}

static bool read_after_scope(void)
{
    return !rapt_data(without_keep());
}

static bool keep_too_near(void)
{
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        {
            RAPT_SCOPE;
            x = rapt_keep(rapt_exp(ones(RAPT_SHAPE(2, 3))));
        }
    }
    return !rapt_neg(x);
}

static bool keep_twice(void)
{
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        x = rapt_keep(rapt_keep(ones(RAPT_SHAPE(2))));
    }
    return is_all(x, 1);
}

static bool keep_for_next_round(void)
{
    rapt_tensor *state = NULL;
    for (int round = 0; round < 2; round++) {
        RAPT_SCOPE;
        state = state ? rapt_add(state, state) : rapt_exp(ones(RAPT_SHAPE(2, 3)));
    }
    return !state;
}

static bool keep_in_global(void)
{
    {
        RAPT_SCOPE;
        kept = rapt_exp(ones(RAPT_SHAPE(2, 3)));
    }
    return !rapt_copy(ones(RAPT_SHAPE(2, 3)), kept);
}

static bool release_what_scope_owns(void)
{
    RAPT_SCOPE;
    rapt_release(rapt_exp(ones(RAPT_SHAPE(2, 3))));
    rapt_scope_end(0);
    return true;
}

static bool release_twice(void)
{
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        x = rapt_retain(rapt_exp(ones(RAPT_SHAPE(2, 3))));
    }
    rapt_release(x);
    rapt_release(x);
    return true;
}

static bool end_without_begin(void)
{
    rapt_tensor *x = ones(RAPT_SHAPE(2));
    rapt_scope_end(0);
    rapt_scope_end(-1);
    return is_all(x, 1);
}

static bool end_old_mark(void)
{
    const rapt_scope first = rapt_scope_begin();
    rapt_scope_end(first);
    RAPT_SCOPE;
    rapt_tensor *x = rapt_exp(ones(RAPT_SHAPE(2, 3)));
    rapt_scope_end(first);
    return !rapt_neg(x);
}

static bool end_outer_first(void)
{
    const rapt_scope outer = rapt_scope_begin(), inner = rapt_scope_begin();
    rapt_scope_end(outer);
    rapt_scope_end(inner);
    return is_all(ones(RAPT_SHAPE(2)), 1);
}

static bool loop_without_scope(void)
{
    for (int i = 0; i < 140000; i++) rapt_scalar(RAPT_FLOAT32, 1);
    return true;
}

static bool sum_of_losses(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(1000)), *sum = rapt_scalar(RAPT_FLOAT32, 0);
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (int i = 0; i < 10; i++) {
        RAPT_SCOPE;
        sum = rapt_keep(rapt_add(sum, total(rapt_exp(x))));
    }
    return rapt_memory_get_statistics().live_bytes > before + 10 * 4000;
}

static bool keep_gradient(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3));
    {
        RAPT_SCOPE;
        rapt_backward(total(rapt_exp(x)));
    }
    rapt_tensor *gradient = rapt_gradient(x);
    rapt_clear_gradient(x);
    return !rapt_neg(gradient);
}

static bool keep_view_only(void)
{
    rapt_tensor *row;
    {
        RAPT_SCOPE;
        row = rapt_keep(rapt_select(ones(RAPT_SHAPE(2, 3)), 0, 1));
    }
    return is_all(row, 1);
}

static void *make_one(void *place)
{
    *(rapt_tensor **)place = rapt_exp(ones(RAPT_SHAPE(2, 3)));
    return NULL;
}

static bool take_from_ended_thread(void)
{
    rapt_tensor *x = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_one, &x) != 0) return false;
    pthread_join(thread, NULL);
    return !rapt_neg(x);
}

static bool fill_what_is_gone(void)
{
    return !rapt_fill(without_keep(), 1);
}

static bool print_what_is_gone(void)
{
    rapt_print(without_keep());
    return true;
}

const mistake scope_mistakes[] = {
    {"A tensor is used after its scope", use_after_scope, GONE, RAPT_ERROR_GONE,
     "neg: input 0 is gone: float32 [2, 3], made by exp; its scope has ended",
     "Use it inside, or hand it out by `rapt_keep`."},
    {"A function with a scope returns a tensor without `rapt_keep`", return_without_keep, GONE, RAPT_ERROR_GONE,
     "sum: input 0 is gone", "`return rapt_keep(result);`"},
    {"The elements of such a tensor are read", read_after_scope, GONE, RAPT_ERROR_GONE, "data: the tensor is gone",
     "Read them inside, or keep it."},
    {"Such a tensor is filled", fill_what_is_gone, GONE, RAPT_ERROR_GONE, "fill: the tensor is gone", "Keep it."},
    {"Such a tensor is printed", print_what_is_gone, GONE, RAPT_ERROR_GONE, "print: the tensor is gone", "Keep it."},
    {"`rapt_keep` in the innermost of two scopes, used outside both", keep_too_near, GONE, RAPT_ERROR_GONE,
     "neg: input 0 is gone", "`rapt_keep` hands it one scope out: keep it in each, or `rapt_retain` it."},
    {"`rapt_keep` twice", keep_twice, WORKS, RAPT_OK, "the second changes nothing", "None needed."},
    {"A state is a plain pointer from one round of a loop to the next", keep_for_next_round, GONE, RAPT_ERROR_GONE,
     "add: input 0 is gone", "`rapt_carry(&state, next);`"},
    {"A global or a struct holds a tensor without a share", keep_in_global, GONE, RAPT_ERROR_GONE,
     "copy: the source is gone",
     "`rapt_retain` what is stored, then `rapt_release` what it replaces, which may be the same."},
    {"`rapt_release` of a tensor that a scope owns", release_what_scope_owns, GONE, RAPT_ERROR_GONE,
     "release: the tensor is gone: float32 [2, 3], made by exp", "Release only what you retained."},
    {"`rapt_release` twice for one `rapt_retain`", release_twice, GONE, RAPT_ERROR_GONE, "release: the tensor is gone",
     "One release for each retain; set the pointer to NULL after it."},
    {"`rapt_scope_end` without a scope", end_without_begin, WORKS, RAPT_OK, "nothing happens",
     "`RAPT_SCOPE;` begins and ends by itself."},
    {"The mark of a scope that has ended is used again", end_old_mark, GONE, RAPT_ERROR_GONE, "neg: input 0 is gone",
     "A mark ends with its scope, and the next scope may have the same one: `RAPT_SCOPE;`."},
    {"The outer scope is ended before the inner one", end_outer_first, WORKS, RAPT_OK,
     "the inner one ends with it, and its own end does nothing", "None needed."},
    {"A loop without a scope", loop_without_scope, WARNS, RAPT_OK, "over 100,000 tensors belong to one scope",
     "`RAPT_SCOPE;` at the top of the loop's block."},
    {"Losses are summed over an epoch as tensors", sum_of_losses, WORKS, RAPT_OK,
     "the graphs of all steps stay alive, and memory grows", "Add `rapt_item(loss)` to a `double`."},
    {"A gradient is used after `rapt_clear_gradient`", keep_gradient, GONE, RAPT_ERROR_GONE, "neg: input 0 is gone",
     "The leaf owns it, also over a step: `rapt_clone` or `rapt_retain` it."},
    {"A view is kept, its base is not", keep_view_only, WORKS, RAPT_OK, "the view holds the memory", "None needed."},
    {"A tensor of a thread is used after the thread has ended", take_from_ended_thread, GONE, RAPT_ERROR_GONE,
     "neg: input 0 is gone", "The thread retains it, who takes it releases it."},
    {0},
};

/* DLPack: the struct that another library sees, and its memory seen by us. The layouts are written down here once
 * more. */
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"
#include "tensor/memory.h"

typedef struct array {
    void *data;
    int32_t device, device_number, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} array;

typedef struct plain {
    array array;
    void *context;
    void (*deleter)(struct plain *);
} plain;

typedef struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *);
    uint64_t flags;
    array array;
} versioned;

static versioned *export(rapt_tensor *tensor)
{
    return (versioned *)(void *)rapt_to_dlpack(tensor);
}

static plain *export_plain(rapt_tensor *tensor)
{
    return (plain *)(void *)rapt_to_dlpack_unversioned(tensor);
}

static rapt_tensor *import(versioned *managed)
{
    return rapt_from_dlpack((struct DLManagedTensorVersioned *)(void *)managed);
}

static rapt_tensor *import_plain(plain *managed)
{
    return rapt_from_dlpack_unversioned((struct DLManagedTensor *)(void *)managed);
}

static int64_t live(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

Test(dlpack, the_struct_says_what_the_tensor_is)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_arange(RAPT_FLOAT64, 0, 6, 1);
    rapt_tensor *turned = rapt_transpose(rapt_reshape(x, RAPT_SHAPE(2, 3)), 0, 1);
    versioned *managed = export(turned);
    cr_expect(managed->major == 1 && managed->flags == 0);
    cr_expect_eq(managed->array.data, rapt_data(x), "a copy");
    cr_expect(managed->array.device == 1 && managed->array.byte_offset == 0);
    cr_expect(managed->array.code == 2 && managed->array.bits == 64 && managed->array.lanes == 1);
    cr_expect(managed->array.rank == 2 && managed->array.shape[0] == 3 && managed->array.shape[1] == 2);
    cr_expect(managed->array.strides[0] == 1 && managed->array.strides[1] == 3);
    managed->deleter(managed);
    const int codes[RAPT_DTYPE_COUNT] = {2, 2, 0, 0, 1, 6}, bits[RAPT_DTYPE_COUNT] = {32, 64, 64, 32, 8, 8};
    for (int dtype = 0; dtype < RAPT_DTYPE_COUNT; dtype++) {
        plain *small = export_plain(rapt_ones((rapt_dtype)dtype, 0, NULL));
        cr_expect(small->array.code == codes[dtype] && small->array.bits == bits[dtype] && small->array.rank == 0);
        small->deleter(small);
    }
    expect_no_error();
}

Test(dlpack, what_is_exported_outlives_its_scope)
{
    const int64_t before = live();
    versioned *managed;
    {
        RAPT_SCOPE;
        managed = export(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1000), 5));
    }
    cr_expect_gt(live(), before);
    cr_expect_eq(((float *)managed->array.data)[999], 5);
    managed->deleter(managed);
    cr_expect_eq(live(), before);
}

/* There and back: one memory, and the way back ends with the last tensor. */
Test(dlpack, both_ways)
{
    const int64_t before = live();
    {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
        rapt_tensor *y = import(export(rapt_transpose(x, 0, 1))), *z = import_plain(export_plain(y));
        cr_expect_eq(rapt_data(z), rapt_data(x));
        cr_expect(rapt_size(z, 0) == 3 && rapt_stride(z, 0) == 1 && rapt_stride(z, 1) == 3);
        cr_expect(rapt_set_at(z, (int64_t[]){2, 1}, 7));
        cr_expect_eq(rapt_at(x, (int64_t[]){1, 2}), 7);
    }
    cr_expect_eq(live(), before);
    expect_no_error();
}

Test(dlpack, changes_of_our_own_export_are_counted)
{
    const int64_t before = live();
    for (int i = 0; i < 2; i++) {
        RAPT_SCOPE;
        rapt_tensor *weight = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
        rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 3);
        rapt_tensor *same = i ? import(export(x)) : import_plain(export_plain(x));
        rapt_tensor *loss = rapt_sum(rapt_mul(weight, x), RAPT_ALL_AXES, false);
        cr_expect(rapt_fill(same, 100));
        cr_expect_not(rapt_backward(loss));
        expect_error(RAPT_ERROR_GRAPH, "changed in place");
        cr_expect_eq(rapt_version(same), rapt_version(x));
    }
    cr_expect_eq(live(), before);
}

Test(dlpack, what_may_only_be_read_is_marked)
{
    RAPT_SCOPE;
    static const float constants[] = {1, 2};
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2)));
    rapt_tensor *const readable[] = {rapt_exp(leaf), rapt_expand(leaf, RAPT_SHAPE(3, 2)),
                                     rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, constants, NULL, NULL)};
    for (int i = 0; i < 3; i++) {
        versioned *managed = export(readable[i]);
        cr_expect_eq(managed->flags, 1);
        rapt_tensor *back = import(managed);
        cr_expect_not(rapt_fill(back, 0));
        if (i != 1) expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
        rapt_clear_error();
        cr_expect_null(export_plain(readable[i]));
        expect_error(RAPT_ERROR_UNSUPPORTED, "may only be read");
    }
    plain *detached = export_plain(rapt_detach(leaf));
    cr_expect_not_null(detached);
    detached->deleter(detached);
    expect_no_error();
}

static int deleted;

static void count_plain(plain *self)
{
    (void)self;
    deleted++;
}

static void count_versioned(versioned *self)
{
    (void)self;
    deleted++;
}

Test(dlpack, memory_of_others_begins_at_its_offset)
{
    int32_t numbers[] = {1, 2, 3, 4};
    int64_t shape[] = {3};
    plain managed =
        {.array = {.data = numbers, .device = 1, .rank = 1, .bits = 32, .lanes = 1, .shape = shape, .byte_offset = 4},
         .deleter = count_plain};
    {
        RAPT_SCOPE;
        rapt_tensor *x = import_plain(&managed);
        cr_expect_eq(rapt_data(x), numbers + 1);
        cr_expect_eq(rapt_item_int64(rapt_slice(x, 0, 2, 3, 1)), 4);
        cr_expect_eq(deleted, 0);
    }
    cr_expect_eq(deleted, 1);
    managed.deleter = NULL; /* allowed: nobody wants to hear of it */
    {
        RAPT_SCOPE;
        cr_expect_not_null(import_plain(&managed));
    }
    expect_no_error();
}

Test(dlpack, what_cannot_be_taken_stays_the_givers)
{
    float numbers[4] = {0};
    int64_t shape[] = {2, 2}, strides[] = {-2, 1};
    RAPT_SCOPE;
    versioned good =
        {.major = 1,
         .deleter = count_versioned,
         .array = {.data = numbers, .device = 1, .rank = 2, .code = 2, .bits = 32, .lanes = 1, .shape = shape}};
    versioned bad = good;
    bad.major = 2;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_UNSUPPORTED, "version 2.0; 1 expected");
    bad = good, bad.array.device = 2;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_UNSUPPORTED, "kind 2; 1, the processor, expected");
    bad = good, bad.array.bits = 16;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_DTYPE, "code 2 with 16 bits and 1 lanes");
    bad = good, bad.array.lanes = 4;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_DTYPE, "4 lanes");
    bad = good, bad.array.strides = strides;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_VALUE, "stride -2 of axis 0 is negative");
    bad = good, bad.array.rank = 9;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_SHAPE, "rank 9");
    bad = good, bad.array.byte_offset = 3;
    cr_expect_null(import(&bad));
    expect_error(RAPT_ERROR_VALUE, "not aligned");
    cr_expect_null(import(NULL));
    expect_error(RAPT_ERROR_NULL, "from_dlpack: managed is NULL");
    cr_expect_null(import_plain(NULL));
    expect_error(RAPT_ERROR_NULL, "from_dlpack_unversioned: managed is NULL");
    cr_expect_null(export(NULL));
    expect_error(RAPT_ERROR_NULL, "to_dlpack: tensor is NULL");
    cr_expect_null(export_plain(NULL));
    expect_error(RAPT_ERROR_NULL, "to_dlpack_unversioned: tensor is NULL");
    rapt_memory_fail_after(0);
    cr_expect_null(import(&good));
    rapt_memory_fail_after(-1);
    expect_error(RAPT_ERROR_MEMORY, "no memory");
    cr_expect_eq(deleted, 0);
}

/* Python's capsule, and the exception that is on its way. */
static struct capsule {
    const char *name;
    void *pointer;
} capsule;
static int raised, was_raised;

static int is_valid(void *of, const char *name)
{
    return of == &capsule && strcmp(capsule.name, name) == 0;
}

static void *get_pointer(void *of, const char *name)
{
    return is_valid(of, name) ? capsule.pointer : NULL;
}

static void fetch(void **type, void **value, void **traceback)
{
    *type = raised ? &raised : NULL;
    *value = *traceback = NULL;
    raised = 0;
}

static void restore(void *type, void *value, void *traceback)
{
    raised = type == &raised && !value && !traceback;
}

static void look_at_the_exception(void *owner)
{
    (void)owner;
    deleted++;
    was_raised |= raised;
}

Test(dlpack, a_capsule_that_nobody_took_gives_its_struct_back)
{
    rapt_python_set(NULL);
    expect_error(RAPT_ERROR_NULL, "python_set: functions is NULL");
    rapt_python_set(&(rapt_python){is_valid, get_pointer, fetch, restore});
    static const char *const names[] = {"dltensor", "dltensor_versioned", "used_dltensor"};
    float number = 1;
    for (int i = 0; i < 3; i++) {
        {
            RAPT_SCOPE;
            rapt_tensor *x = rapt_wrap(RAPT_FLOAT32, 0, NULL, NULL, &number, look_at_the_exception, NULL);
            capsule = (struct capsule){names[i], i == 1 ? (void *)export(x) : (void *)export_plain(x)};
            if (i == 2) cr_expect_not_null(import_plain(capsule.pointer));
        }
        raised = 1;
        rapt_python_capsule_destructor(&capsule);
        cr_expect(raised, "and the exception is raised as before");
        raised = 0;
    }
    cr_expect(deleted == 3 && !was_raised);
    expect_no_error();
}

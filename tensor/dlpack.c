/* DLPack both ways: the struct by which array libraries of one process hand memory to each other. The layouts are the
 * standard's, versions 0.x and 1.x; https://dmlc.github.io/dlpack */
#include <rapt/wrap.h>

#include <stdlib.h>

#include "tensor/debug.h"

enum { on_processor = 1 };
enum { code_int, code_unsigned, code_float, code_bool = 6 };
enum { major_version = 1 };
static const uint64_t read_only_flag = 1;

typedef struct dlpack_tensor {
    void *data;
    struct {
        int32_t kind, number;
    } device;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } element;
    int64_t *shape, *strides; /* strides in elements; NULL: row-major */
    uint64_t byte_offset;
} dlpack_tensor;

struct DLManagedTensor {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
};

/* --- from rapt --- */

/* What the struct points to. */
typedef struct exported {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } managed; /* first: its address is this one's */
    rapt_tensor *tensor;
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
} exported;

static void free_exported(void *context)
{
    exported *e = context;
    rapt_release(e->tensor);
    free(e);
}

static void delete_plain(struct DLManagedTensor *self)
{
    free_exported(self->context);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    free_exported(self->context);
}

static void describe(dlpack_tensor *out, exported *e)
{
    static const uint8_t codes[RAPT_DTYPE_COUNT] = {
        [RAPT_FLOAT32] = code_float, [RAPT_FLOAT64] = code_float,  [RAPT_INT64] = code_int,
        [RAPT_INT32] = code_int,     [RAPT_UINT8] = code_unsigned, [RAPT_BOOL] = code_bool,
    };
    const rapt_tensor *tensor = e->tensor;
    *out = (dlpack_tensor){.data = tensor->data,
                           .device.kind = on_processor,
                           .rank = tensor->rank,
                           .element.code = codes[tensor->dtype],
                           .element.bits = (uint8_t)(rapt_element_bytes[tensor->dtype] * 8),
                           .element.lanes = 1,
                           .shape = e->shape,
                           .strides = e->strides};
    for (int axis = 0; axis < tensor->rank; axis++) {
        e->shape[axis] = tensor->shape[axis];
        e->strides[axis] = tensor->strides[axis];
    }
}

static exported *export_tensor(const char *op, const rapt_tensor *tensor)
{
    if (!tensor) rapt_fail_null(op, "tensor");
    if (!tensor || !rapt_check_alive(op, "the tensor", tensor)) return NULL;
    exported *e = calloc(1, sizeof *e);
    if (!e) rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the description of a tensor");
    if (e && (e->tensor = rapt_alias_share(tensor, false))) return e;
    free(e);
    return NULL;
}

/* True when its elements may be written without rapt's knowing of it. */
static bool is_writable(const rapt_tensor *tensor)
{
    return rapt_repeated_axis(tensor) < 0 && !tensor->storage->is_read_only &&
           !(tensor->link && !tensor->link->kind->is_leaf);
}

struct DLManagedTensorVersioned *rapt_to_dlpack(const rapt_tensor *tensor)
{
    exported *e = export_tensor("to_dlpack", tensor);
    if (!e) return NULL;
    struct DLManagedTensorVersioned *managed = &e->managed.versioned;
    managed->version.major = major_version;
    managed->context = e;
    managed->deleter = delete_versioned;
    managed->flags = is_writable(tensor) ? 0 : read_only_flag;
    describe(&managed->tensor, e);
    return managed;
}

struct DLManagedTensor *rapt_to_dlpack_unversioned(const rapt_tensor *tensor)
{
    const char *op = "to_dlpack_unversioned";
    if (tensor && rapt_check_alive(op, "the tensor", tensor) && !is_writable(tensor)) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, op,
                  "the tensor may only be read (a recorded result, an expanded view or read-only memory), and the "
                  "unversioned struct cannot say so; use rapt_to_dlpack, or export a detached clone");
        return NULL;
    }
    exported *e = export_tensor(op, tensor);
    if (!e) return NULL;
    struct DLManagedTensor *managed = &e->managed.plain;
    managed->context = e;
    managed->deleter = delete_plain;
    describe(&managed->tensor, e);
    return managed;
}

/* --- to rapt --- */

static const struct {
    uint8_t code, bits;
    rapt_dtype dtype;
} elements[] = {
    {code_float, 32, RAPT_FLOAT32}, {code_float, 64, RAPT_FLOAT64}, {code_int, 64, RAPT_INT64},
    {code_int, 32, RAPT_INT32},     {code_unsigned, 8, RAPT_UINT8}, {code_bool, 8, RAPT_BOOL},
};

static rapt_tensor *import(const char *op, const dlpack_tensor *from, bool is_read_only, void (*release)(void *),
                           void *owner)
{
    const int count = sizeof elements / sizeof *elements;
    int found = 0;
    while (found < count && !(elements[found].code == from->element.code && elements[found].bits == from->element.bits))
        found++;
    if (from->device.kind != on_processor)
        rapt_fail(RAPT_ERROR_UNSUPPORTED, op,
                  "the memory is on a device of DLPack's kind %d; %d, the processor, expected", (int)from->device.kind,
                  on_processor);
    else if (found == count || from->element.lanes != 1)
        rapt_fail(RAPT_ERROR_DTYPE, op,
                  "elements of DLPack's code %d with %d bits and %d lanes; float of 32 or 64 bits, int of 32 or 64, "
                  "unsigned int of 8 or bool expected",
                  from->element.code, from->element.bits, from->element.lanes);
    else
        return rapt_new_wrapped(op, elements[found].dtype, from->rank, from->shape, from->strides,
                                from->data ? (char *)from->data + from->byte_offset : NULL, is_read_only, release,
                                owner);
    return NULL;
}

static void release_plain(void *owner)
{
    struct DLManagedTensor *managed = owner;
    if (managed->deleter) managed->deleter(managed);
}

static void release_versioned(void *owner)
{
    struct DLManagedTensorVersioned *managed = owner;
    if (managed->deleter) managed->deleter(managed);
}

/* Of an export of our own that may be written: changes are counted for both. */
static rapt_tensor *import_own(exported *e)
{
    rapt_tensor *tensor = rapt_new_alias(e->tensor, false);
    if (tensor) free_exported(e);
    return tensor;
}

rapt_tensor *rapt_from_dlpack(struct DLManagedTensorVersioned *managed)
{
    const char *op = "from_dlpack";
    if (!managed)
        rapt_fail_null(op, "managed");
    else if (managed->version.major != major_version)
        rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "DLPack of version %u.%u; %d expected", managed->version.major,
                  managed->version.minor, major_version);
    else if (managed->deleter == delete_versioned && !(managed->flags & read_only_flag))
        return import_own(managed->context);
    else
        return import(op, &managed->tensor, managed->flags & read_only_flag, release_versioned, managed);
    return NULL;
}

rapt_tensor *rapt_from_dlpack_unversioned(struct DLManagedTensor *managed)
{
    const char *op = "from_dlpack_unversioned";
    if (managed && managed->deleter == delete_plain) return import_own(managed->context);
    if (managed) return import(op, &managed->tensor, false, release_plain, managed);
    rapt_fail_null(op, "managed");
    return NULL;
}

/* --- capsules --- */

static rapt_python python;

void rapt_python_set(const rapt_python *functions)
{
    if (functions)
        python = *functions;
    else
        rapt_fail_null("python_set", "functions");
}

void rapt_python_capsule_destructor(void *capsule)
{
    if (!python.capsule_is_valid) return;
    void *error[3];
    python.error_fetch(&error[0], &error[1], &error[2]);
    if (python.capsule_is_valid(capsule, "dltensor_versioned"))
        release_versioned(python.capsule_get_pointer(capsule, "dltensor_versioned"));
    else if (python.capsule_is_valid(capsule, "dltensor"))
        release_plain(python.capsule_get_pointer(capsule, "dltensor"));
    python.error_restore(error[0], error[1], error[2]);
}

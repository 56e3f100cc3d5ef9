/* What every public header needs: export marks, the version, element types and limits. */
#ifndef RAPT_BASE_H
#define RAPT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rapt/in_place.h>

/* Of these headers, as text: major.minor.patch; and as 10⁶ major + 10³ minor + patch, for #if. rapt_get_version_number
 * gives that of the library that runs. */
#define RAPT_VERSION "0.2.0"
#define RAPT_VERSION_NUMBER 2000

/* Marks what the library exports. */
#define RAPT_API __attribute__((visibility("default")))

/* Whose formats functions with "..." take: the C standard's, on Windows too. */
#ifdef __MINGW32__
#define RAPT_PRINTF __gnu_printf__
#else
#define RAPT_PRINTF __printf__
#endif

/* A name that ends in the value of a macro. */
#define RAPT_JOIN_(a, b) a##b
#define RAPT_JOIN(a, b) RAPT_JOIN_(a, b)

/* Stand around declarations, which have C names in C++ too. */
#ifdef __cplusplus
#define RAPT_BEGIN_DECLS extern "C" {
#define RAPT_END_DECLS }
#else
#define RAPT_BEGIN_DECLS
#define RAPT_END_DECLS
#endif

/* The most axes a tensor can have. */
#define RAPT_MAX_RANK 8

/* In a configuration 0 means the default. Where a header says so, RAPT_ZERO is a true zero: −2⁻⁶⁰, a number that no
 * option can be otherwise. It is the same in every floating type, so no compiler flag (-Ofast, -ffast-math) makes it
 * another one. */
#define RAPT_ZERO (-1.0 / (1LL << 60))

RAPT_BEGIN_DECLS

/* The type of a tensor's elements. bool has a byte each, 0 or 1. */
typedef enum rapt_dtype {
    RAPT_FLOAT32,
    RAPT_FLOAT64,
    RAPT_INT64,
    RAPT_INT32,
    RAPT_UINT8,
    RAPT_BOOL,
} rapt_dtype;

/* How many there are. */
#define RAPT_DTYPE_COUNT 6

/* An array of elements of one type, with up to RAPT_MAX_RANK axes, and what the graph knows of it. */
typedef struct rapt_tensor rapt_tensor;

/* Bytes of one element; 0 for a value that is no dtype. */
RAPT_API size_t rapt_dtype_size(rapt_dtype dtype);

/* "float32", "int64", ...; "invalid" for a value that is no dtype. */
RAPT_API const char *rapt_dtype_name(rapt_dtype dtype);

/* True for float32 and float64, the types that can carry gradients. */
RAPT_API bool rapt_dtype_is_floating(rapt_dtype dtype);

RAPT_END_DECLS

#endif

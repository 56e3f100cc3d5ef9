/* Whether ranks save and load the same: hashes of names, sizes and first numbers. */
#include <stdlib.h>
#include <string.h>

#include "data_parallel.h"

void rapt_hash_add(uint64_t *hash, const char *text, int64_t number)
{
    for (; *text; text++) *hash = (*hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    *hash = (*hash ^ (uint64_t)number) * UINT64_C(0x100000001B3);
}

bool rapt_check_same_hash(const rapt_data_parallel *p, const char *op, uint64_t hash, const char *difference)
{
    uint64_t first = hash;
    int mark;
    const bool good = rapt_check_mpi(op, MPI_Bcast(&first, 1, MPI_UINT64_T, 0, p->scatter)) &&
                      (first == hash || rapt_fail(RAPT_ERROR_RANK, op, "%s here than on rank 0", difference));
    return rapt_ranks_agree(p, op, good, &mark, 1);
}

/* Adds a tensor's first numbers. */
static void add_numbers(uint64_t *hash, const rapt_tensor *tensor)
{
    enum { few = 16 };
    const int64_t count = tensor ? rapt_count(tensor) : 0, first = count < few ? count : few;
    const unsigned char *bytes = rapt_data(tensor);
    for (size_t k = 0; bytes && k < (size_t)first * rapt_dtype_size(rapt_get_dtype(tensor)); k++)
        rapt_hash_add(hash, "", bytes[k]);
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Of what all ranks have alike: weights, averages, and an optimizer's state but for pieces, which each has its own. Of
 * a loader's, say, ranks may have seeds of their own. */
static uint64_t hash_of_model(const rapt_archive *whole, int64_t i, bool is_sharded)
{
    RAPT_SCOPE; /* of half-sized numbers the tensor is a copy */
    const char *name = rapt_archive_name(whole, i);
    uint64_t hash = 1;
    if (begins_with(name, "module.") || begins_with(name, "average.") ||
        (begins_with(name, "optimizer.") && !(is_sharded && begins_with(name, "optimizer.bucket."))))
        add_numbers(&hash, rapt_archive_tensor(whole, i));
    return hash;
}

bool rapt_check_same_numbers(const rapt_data_parallel *p, const char *op, const rapt_archive *whole, bool is_sharded)
{
    const int count = (int)rapt_archive_count(whole); /* the same on all, as their names are */
    int mark;
    uint64_t *own = calloc((size_t)count + 1, sizeof *own), *first = calloc((size_t)count + 1, sizeof *first);
    bool good =
        rapt_ranks_agree(p, op, (own && first) || rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %d tensors", count),
                         &mark, 1);
    for (int i = 0; good && i < count; i++) first[i] = own[i] = hash_of_model(whole, i, is_sharded);
    if (good) {
        int differs = 0;
        good = rapt_check_mpi(op, MPI_Bcast(first, count, MPI_UINT64_T, 0, p->scatter));
        while (differs < count && own[differs] == first[differs]) differs++;
        if (good && differs < count)
            good =
                rapt_fail(RAPT_ERROR_RANK, op, "%s has other numbers here than on rank 0; the ranks' models went apart",
                          rapt_archive_name(whole, differs));
        good = rapt_ranks_agree(p, op, good, &mark, 1);
    }
    free(own), free(first);
    return good;
}

uint64_t rapt_hash_of_archive(const rapt_archive *archive)
{
    uint64_t hash = 1;
    const char *key;
    for (int64_t i = 0; (key = rapt_archive_key(archive, i)); i++) {
        rapt_hash_add(&hash, key, 0);
        rapt_hash_add(&hash, rapt_archive_find_text(archive, key), 0);
    }
    for (int64_t i = 0; i < rapt_archive_count(archive); i++) {
        RAPT_SCOPE; /* of half-sized numbers the tensor is a copy */
        const char *stored = rapt_archive_name(archive, i);
        const rapt_tensor *tensor = rapt_archive_tensor(archive, i);
        rapt_hash_add(&hash, stored, tensor ? rapt_count(tensor) : 0);
        if (strcmp(stored, "random_state") != 0) add_numbers(&hash, tensor);
    }
    return hash;
}

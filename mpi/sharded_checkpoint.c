/* Checkpoints of ranks: each writes its share, rank 0 the index. What comes back is a checkpoint as one process has it:
 * of a sharded optimizer the pieces are put together by parameter, and cut again when they are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_parallel.h"

#define PREFIX "optimizer."
#define PIECE PREFIX "bucket."
#define ENDING ".safetensors.index.json"

enum { name_room = 2048, path_room = 4096 };

static bool is_index(const char *path)
{
    const size_t size = strlen(path), ending = strlen(ENDING);
    return size > ending && strcmp(path + size - ending, ENDING) == 0;
}

static bool copy_texts(rapt_archive *to, const rapt_archive *from)
{
    const char *key;
    for (int64_t i = 0; (key = rapt_archive_key(from, i)); i++)
        if (!rapt_archive_add_text(to, key, rapt_archive_find_text(from, key))) return false;
    return true;
}

/* "optimizer.NAME.member" */
static bool state_name(char text[name_room], const char *op, const char *name, const char *member)
{
    return snprintf(text, name_room, PREFIX "%s.%s", name, member) < name_room ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the name %.100s is too long", name);
}

/* An optimizer's state has the dtypes that its parameters had, and pieces are of those that were trained. A module
 * alone may have changed. */
static bool check_parameters(const rapt_data_parallel *p, const char *op, bool has_optimizer, bool has_pieces)
{
    return has_pieces ? rapt_check_trained(p, op) : !has_optimizer || rapt_check_dtypes(p, op);
}

static bool check_arguments(const rapt_data_parallel *p, const char *op, const char *path,
                            const rapt_checkpoint *checkpoint)
{
    if (!path || !checkpoint) return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", path ? "checkpoint" : "path");
    if (strlen(path) + sizeof "-00001-of-00001-a" > path_room)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.100s...' is too long", path);
    if (checkpoint->module != p->module)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the checkpoint has another module than the ranks train");
    return !p->sharded || !checkpoint->optimizer || checkpoint->optimizer == p->sharded ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the checkpoint has another optimizer than the sharded one");
}

/* --- saving --- */

typedef struct saving {
    rapt_data_parallel *parallel;
    const char *op;
    int writers;         /* ranks that write a share: all, or rank 0 alone */
    rapt_archive *share; /* this rank's; NULL while bytes are counted */
    int64_t total, done; /* bytes of all shares; of what came before */
    uint64_t hash;       /* of all names and sizes */
} saving;

/* Shares are what lies between multiples of total / writers. */
static bool give(saving *s, const char *name, rapt_tensor *tensor)
{
    const int64_t bytes = rapt_count(tensor) * (int64_t)rapt_dtype_size(rapt_get_dtype(tensor));
    if (!s->share) {
        rapt_hash_add(&s->hash, name, bytes);
        s->total += bytes;
        return true;
    }
    const int64_t writer = s->done / (s->total / s->writers + 1);
    s->done += bytes;
    return writer != s->parallel->rank || rapt_archive_add(s->share, name, tensor);
}

/* Gathers a state of a bucket as new numbers of its parameters. After an error on this rank the others get theirs. */
static bool gather_state(rapt_data_parallel *p, int number, rapt_tensor *state)
{
    rapt_bucket *b = &p->buckets[number];
    bool good = true;
    for (int i = b->first_parameter; i < b->first_parameter + b->parameters; i++) {
        rapt_shared_parameter *one = &p->parameters[i];
        one->numbers = rapt_retain(rapt_empty(b->dtype, RAPT_SHAPE(rapt_count(one->parameter))));
        if (!one->numbers) good = false;
    }
    b->given = state;
    return rapt_buckets_spread(p, number, number + 1) && good;
}

/* A state of a bucket, or one of its numbers, under the names of its parameters. */
static bool give_state(saving *s, int number, const char *member, rapt_tensor *state)
{
    RAPT_SCOPE;
    rapt_data_parallel *p = s->parallel;
    const rapt_bucket *b = &p->buckets[number];
    const bool is_piece = rapt_rank(state) == 1;
    char name[name_room];
    bool good = !is_piece || !s->share || gather_state(p, number, state);
    for (int i = b->first_parameter; good && i < b->first_parameter + b->parameters; i++) {
        const rapt_shared_parameter *one = &p->parameters[i];
        rapt_tensor *own = is_piece ? one->parameter : state;
        if (is_piece && s->share) own = rapt_reshape(one->numbers, rapt_rank(own), rapt_shape(own));
        good = own && state_name(name, s->op, one->name, member) && give(s, name, own);
    }
    rapt_numbers_free(p, number, number + 1);
    return good;
}

/* An optimizer of one process has a number for what is frozen, too. */
static bool give_frozen(saving *s)
{
    RAPT_SCOPE;
    char name[name_room];
    const int64_t none = 0;
    rapt_tensor *steps = rapt_from(RAPT_INT64, 0, NULL, &none);
    rapt_tensor_list *list = rapt_module_list(s->parallel->module, RAPT_PARAMETERS);
    bool good = steps && list;
    for (int i = 0; good && i < list->count; i++)
        if (!rapt_requires_gradient(list->tensors[i]))
            good = state_name(name, s->op, list->names[i], "step") && give(s, name, steps);
    rapt_tensor_list_free(list);
    return good;
}

/* The bucket of whose piece it is a state, "optimizer.bucket.N.member", and the member; −1: of none. */
static int piece_of(const rapt_data_parallel *p, const char *name, const char **member)
{
    char begin[sizeof PIECE + 16];
    for (int i = 0; i < p->bucket_count; i++) {
        const int length = snprintf(begin, sizeof begin, PIECE "%d.", i);
        *member = name + length;
        if (strncmp(name, begin, (size_t)length) == 0 && !strchr(*member, '.')) return i;
    }
    return -1;
}

/* Everything, in the same order on all ranks, and to the end. */
static bool give_all(saving *s, const rapt_archive *whole, bool is_sharded)
{
    bool good = true;
    for (int64_t i = 0; i < rapt_archive_count(whole); i++) {
        const char *name = rapt_archive_name(whole, i);
        rapt_tensor *tensor = rapt_archive_tensor(whole, i);
        const char *member;
        const int number = is_sharded ? piece_of(s->parallel, name, &member) : -1;
        if (!(number >= 0 ? give_state(s, number, member, tensor) : give(s, name, tensor))) good = false;
    }
    return good && (!is_sharded || give_frozen(s));
}

/* The shards' names, to which the index that is there does not lead; 0: the number of a rank that has nothing to write,
 * and so no shard. */
static bool choose_set(const saving *s, const char *path, rapt_shard_set *set, int *number)
{
    const rapt_data_parallel *p = s->parallel;
    const int has_shard = rapt_archive_count(s->share) > 0;
    int mark;
    if (!rapt_check_mpi(s->op, MPI_Scan(&has_shard, number, 1, MPI_INT, MPI_SUM, p->scatter)) ||
        !rapt_check_mpi(s->op, MPI_Allreduce(&has_shard, &set->count, 1, MPI_INT, MPI_SUM, p->scatter)))
        return false;
    if (!has_shard) *number = 0;
    const bool is_chosen = p->rank > 0 || rapt_shard_set_choose(path, set->count, set);
    return rapt_ranks_agree(p, s->op, is_chosen, &mark, 1) &&
           rapt_check_mpi(s->op, MPI_Bcast(&set->letter, 1, MPI_CHAR, 0, p->scatter));
}

/* Of a set that does not come about, when no rank writes any more; the first shard, which keeps others away, last. */
static void drop_set(const saving *s, const char *path, const rapt_shard_set *set)
{
    char text[path_room];
    for (int number = s->parallel->rank == 0 ? set->count : 0; number > 0; number--)
        if (rapt_shard_set_path(path, set, number, text, sizeof text)) unlink(text);
}

/* Every rank's shard; then the index, which makes the set the one that is there. */
static bool write_set(saving *s, const char *path)
{
    const rapt_data_parallel *p = s->parallel;
    int mark, number;
    char text[path_room] = "";
    rapt_shard_set set = {0};
    if (!choose_set(s, path, &set, &number)) return false;
    const bool is_written = number == 0 || (rapt_shard_set_path(path, &set, number, text, sizeof text) &&
                                            rapt_save_safetensors(text, s->share));
    if (!rapt_ranks_agree(p, s->op, is_written, &mark, 1)) {
        drop_set(s, path, &set);
        return false;
    }
    struct stat before = {.st_ino = 0}, after = {.st_ino = 0};
    stat(path, &before);
    const bool good = p->rank > 0 || rapt_shard_set_save_index(path, &set);
    stat(path, &after); /* which is another file where only the syncing of its folder failed */
    if (!good && before.st_ino == after.st_ino) drop_set(s, path, &set);
    return rapt_ranks_agree(p, s->op, good, &mark, 1);
}

static bool save(saving *s, const char *path, const rapt_checkpoint *checkpoint, rapt_archive *whole)
{
    const rapt_data_parallel *p = s->parallel;
    const bool is_sharded = p->sharded && checkpoint->optimizer;
    int mark;
    bool good = whole && rapt_checkpoint_to_archive(checkpoint, whole) && give_all(s, whole, is_sharded);
    if (!rapt_ranks_agree(p, s->op, good, &mark, 1)) return false;
    rapt_hash_add(&s->hash, checkpoint->note ? checkpoint->note : "", checkpoint->step);
    if (!rapt_check_same_hash(p, s->op, s->hash, "there is something else to be saved") ||
        !rapt_check_same_numbers(p, s->op, whole, is_sharded))
        return false;
    s->share = rapt_archive_new();
    if (!rapt_ranks_agree(p, s->op, s->share && copy_texts(s->share, whole), &mark, 1) ||
        !rapt_ranks_agree(p, s->op, give_all(s, whole, is_sharded), &mark, 1))
        return false;
    if (is_index(path)) return write_set(s, path);
    return rapt_ranks_agree(p, s->op, p->rank > 0 || rapt_save_safetensors(path, s->share), &mark, 1);
}

bool rapt_data_parallel_save(rapt_data_parallel *p, const char *path, const rapt_checkpoint *checkpoint)
{
    const char *op = "data_parallel_save";
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    const bool is_good = check_arguments(p, op, path, checkpoint) && rapt_check_between_steps(p, op) &&
                         check_parameters(p, op, checkpoint->optimizer, p->sharded && checkpoint->optimizer);
    if (!rapt_ranks_agree(p, op, is_good, &mark, 1)) return false;
    uint64_t name_hash = 1; /* folders may have other names */
    const char *last = strrchr(path, '/');
    rapt_hash_add(&name_hash, last ? last + 1 : path, 0);
    if (!rapt_check_same_hash(p, op, name_hash, "the path ends in another name")) return false;
    saving s = {.parallel = p, .op = op, .writers = is_index(path) ? p->ranks : 1, .hash = 1};
    rapt_archive *whole = rapt_archive_new();
    const bool good = save(&s, path, checkpoint, whole);
    rapt_archive_free(s.share);
    rapt_archive_free(whole);
    return good;
}

/* --- loading --- */

/* Makes the states of a bucket's parameters their numbers. */
static bool take_states(const rapt_data_parallel *p, int number, const char *member, const rapt_archive *archive)
{
    const char *op = "data_parallel_load";
    char name[name_room], expected[200];
    const rapt_bucket *b = &p->buckets[number];
    for (int i = b->first_parameter; i < b->first_parameter + b->parameters; i++) {
        rapt_shared_parameter *one = &p->parameters[i];
        if (!state_name(name, op, one->name, member)) return false;
        rapt_tensor *state = rapt_archive_find(archive, name);
        if (!state || rapt_get_dtype(state) != b->dtype || !rapt_same_shape(state, one->parameter))
            return rapt_fail(RAPT_ERROR_FORMAT, op, "the file has no %s of %s", name,
                             rapt_describe(one->parameter, expected, sizeof expected));
        one->numbers = rapt_retain(rapt_reshape(state, RAPT_SHAPE(-1)));
        if (!one->numbers) return false;
    }
    return true;
}

/* This rank's piece of the states of a bucket's parameters, one behind the other. */
static rapt_tensor *cut_piece(const rapt_data_parallel *p, int number, const char *member, const rapt_archive *archive)
{
    const bool good = take_states(p, number, member, archive);
    rapt_tensor *piece = good ? rapt_bucket_cut(p, &p->buckets[number]) : NULL;
    rapt_numbers_free(p, number, number + 1);
    return piece;
}

/* A number that the bucket's parameters have, which must be the same. */
static rapt_tensor *common_number(const rapt_data_parallel *p, int number, const char *member,
                                  const rapt_archive *archive)
{
    const char *op = "data_parallel_load";
    char name[name_room];
    rapt_tensor *common = NULL;
    for (int i = 0; i < p->parameter_count; i++) {
        const rapt_shared_parameter *one = &p->parameters[i];
        if (one->bucket != number) continue;
        if (!state_name(name, op, one->name, member)) return NULL;
        rapt_tensor *found = rapt_archive_find(archive, name);
        if (!found || rapt_count(found) != 1 || (common && rapt_item(found) != rapt_item(common)))
            return rapt_fail(RAPT_ERROR_FORMAT, op,
                             "%s is missing, or not that of other parameters: an optimizer can only be sharded when "
                             "each step was one of all parameters",
                             name),
                   NULL;
        if (!common) common = found;
    }
    return common;
}

/* The bucket whose first parameter has a state of that name, and the member; −1: none. */
static int bucket_of(const rapt_data_parallel *p, const char *name, const char **member)
{
    const char *begin = name + strlen(PREFIX), *dot = strrchr(begin, '.');
    if (!dot) return -1;
    *member = dot + 1;
    for (int i = 0; i < p->parameter_count; i++) {
        const rapt_shared_parameter *one = &p->parameters[i];
        if (i > 0 && one[-1].bucket == one->bucket) continue;
        if (strlen(one->name) == (size_t)(dot - begin) && strncmp(one->name, begin, (size_t)(dot - begin)) == 0)
            return one->bucket;
    }
    return -1;
}

/* What a file has, with the pieces of the sharded optimizer in place of its parameters' state. */
static bool cut_archive(const rapt_data_parallel *p, const rapt_archive *archive, rapt_archive *own)
{
    char name[name_room];
    if (!copy_texts(own, archive)) return false;
    for (int64_t i = 0; i < rapt_archive_count(archive); i++) {
        RAPT_SCOPE;
        const char *stored = rapt_archive_name(archive, i), *member = NULL;
        rapt_tensor *tensor = rapt_archive_tensor(archive, i);
        const bool is_state = strncmp(stored, PREFIX, strlen(PREFIX)) == 0;
        const int number = is_state ? bucket_of(p, stored, &member) : -1;
        if (number < 0 && piece_of(p, stored, &member) >= 0) continue; /* one rank's, or of a parameter of that name */
        if (number >= 0) {
            snprintf(name, sizeof name, PIECE "%d.%s", number, member);
            tensor = strcmp(member, "step") == 0 ? common_number(p, number, member, archive)
                                                 : cut_piece(p, number, member, archive);
        }
        if (!tensor || !rapt_archive_add(own, number >= 0 ? name : stored, tensor)) return false;
    }
    return true;
}

bool rapt_data_parallel_load(rapt_data_parallel *p, const char *path, rapt_checkpoint *checkpoint)
{
    const char *op = "data_parallel_load";
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    const bool is_good =
        check_arguments(p, op, path, checkpoint) && check_parameters(p, op, checkpoint->optimizer, p->sharded);
    if (!rapt_ranks_agree(p, op, is_good, &mark, 1)) return false;
    rapt_archive *archive = rapt_map_safetensors(path), *own = rapt_archive_new();
    const bool is_sharded = p->sharded && checkpoint->optimizer;
    const bool alike =
        rapt_ranks_agree(p, op, archive && own, &mark, 1) &&
        rapt_check_same_hash(p, op, rapt_hash_of_archive(archive), "there is something else to be loaded");
    const bool good = alike && (!is_sharded || cut_archive(p, archive, own)) &&
                      rapt_checkpoint_from_archive(checkpoint, is_sharded ? own : archive) &&
                      (!p->sharded || rapt_take_pieces(p));
    rapt_archive_free(archive);
    rapt_archive_free(own);
    return alike && rapt_ranks_agree(p, op, good, &mark, 1);
}

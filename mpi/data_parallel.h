/* What data-parallel training is inside: the model's parameters, in buckets, whose gradients are summed over ranks. */
#ifndef RAPT_MPI_DATA_PARALLEL_H
#define RAPT_MPI_DATA_PARALLEL_H

#include <rapt/mpi.h>

/* The most levels of the tree over the parts of one rank. */
#define RAPT_MAX_LEVELS 31

/* Of an error's message ranks tell each other so many bytes. */
#define RAPT_REASON_ROOM 600

/* A parameter: where its gradient lies. */
typedef struct rapt_shared_parameter {
    rapt_tensor *parameter;
    char *name;
    int bucket;
    int64_t first;     /* of the bucket's elements */
    rapt_tensor *view; /* of its bucket's sum, in the parameter's shape; NULL where gradients are sharded */
    /* What parcels take from it or give to it, as one axis: a sharded gradient on its way, the parameter, a state of
     * the optimizer. NULL: zeros. */
    rapt_tensor *numbers;
    uint64_t version; /* when the sharded optimizer's pieces had its values */
    bool arrived;     /* in the part that is under way */
    bool used;        /* in any own part of the step */
} rapt_shared_parameter;

/* Gradients of one dtype that travel together. Each rank sums one piece of them, and gives the sum to all. */
typedef struct rapt_bucket {
    rapt_dtype dtype;
    int first_parameter, parameters;
    int awaited;      /* parameters, in the part that is under way */
    int64_t elements; /* of the parameters */
    int64_t piece;    /* elements for one rank; all pieces together may be longer than the elements */
    int first_parcel, parcels;
    rapt_tensor *gradient; /* (piece): the sum over all, where gradients are sharded; NULL when there is none */
    rapt_tensor *values;   /* (piece): this rank's, of the parameters, where the optimizer is sharded */
    rapt_tensor *given;    /* (piece): what goes to all: the values, or a state of theirs */
    /* Sums of 1, 2, 4, … own parts that wait for as many more; of pieces, where gradients are sharded. */
    rapt_tensor *levels[RAPT_MAX_LEVELS];
} rapt_bucket;

/* Memory for a parcel. */
typedef struct rapt_slot {
    rapt_tensor *sum;  /* (ranks · count): what goes out, in the end what came from all */
    rapt_tensor *mine; /* (ranks · count): this rank's numbers, from all ranks */
} rapt_slot;

/* What travels at once: so many elements of each piece of a bucket. Where gradients are sharded a bucket may have
 * several, and few slots are used in turn; else all that a bucket has is one, and has a slot of its own. */
typedef struct rapt_parcel {
    int bucket;
    int64_t first, count; /* of each piece */
    rapt_slot *slot;
    MPI_Request request;
} rapt_parcel;

/* Of parts: their weight, and Σ weight · loss. */
typedef struct rapt_totals {
    double weight, loss;
} rapt_totals;

struct rapt_data_parallel {
    rapt_module *module;
    /* Collective calls on one communicator must come in one order on all ranks: pieces go out and sums come in on
     * two of them, each in the order of the buckets. */
    MPI_Comm scatter, gather;
    int rank, ranks;
    int parts, own_parts; /* of a batch: of all ranks, and of each */
    rapt_shared_parameter *parameters;
    rapt_bucket *buckets;
    rapt_parcel *parcels; /* in the order of the buckets */
    rapt_slot *slots;
    int parameter_count, bucket_count, parcel_count, slot_count;
    int at_once;               /* so many parcels may be under way: their slots differ */
    bool shards_gradients;     /* of which a rank then keeps its pieces only */
    rapt_optimizer *sharded;   /* steps this rank's pieces; NULL: every rank steps everything */
    rapt_tensor_list *buffers; /* the module's, and their versions when all ranks had rank 0's values */
    uint64_t *versions;
    int *marks;       /* what ranks agree upon: who failed, whether each parameter was used, and each buffer changed */
    rapt_totals *all; /* of each rank */
    double *norms;    /* of each rank's gradients */
    /* Of the step that is under way. */
    int done;                            /* own parts */
    double weight;                       /* of the part that is under way */
    bool is_finite;                      /* its loss, of weight 0 */
    int scattered, summed;               /* parcels whose numbers are on their way, and are there */
    bool failed, broken;                 /* on this rank; MPI itself */
    rapt_ring *ring;                     /* whose ranks backward meets on its way; NULL: none */
    char reason[RAPT_REASON_ROOM];       /* why it failed, should its error be cleared before the others hear of it */
    bool has_sums;                       /* of a finish that went well, and whose step was not made yet */
    rapt_totals levels[RAPT_MAX_LEVELS]; /* of 1, 2, 4, … own parts, added up as gradients are */
    rapt_totals own, totals;             /* what this rank tells, and what all ranks have */
    bool has_totals;
    MPI_Request totals_request;
};

/* Between MPI_Init and MPI_Finalize: MPI ends a program that calls anything else before or behind. */
bool rapt_mpi_is_running(void);

/* False and an error when MPI's call, whose code this is, failed. */
bool rapt_check_mpi(const char *op, int code);

/* Who tells each other: the ranks of a communicator, and this one's number. */
typedef struct rapt_ranks {
    MPI_Comm communicator;
    int rank, ranks;
    const char *reason; /* what this one tells; NULL or "": the error that stands */
} rapt_ranks;

/* Those of a communicator. False and an error unless MPI is running and it is one. */
bool rapt_ranks_of(const char *op, MPI_Comm communicator, rapt_ranks *ranks);

/* Whether all ranks are well. Where one is not, its error is everyone's: false on all ranks. Of the marks, `count` of
 * them from 0 on, each rank then has the largest of all ranks; marks[0] is this function's own. */
bool rapt_ranks_tell(const rapt_ranks *ranks, const char *op, bool good, int *marks, int count);
bool rapt_ranks_agree(const rapt_data_parallel *parallel, const char *op, bool good, int *marks, int count);

/* The step that is under way has failed, by the error that stands. */
void rapt_note_failure(rapt_data_parallel *parallel);

/* An error on all ranks unless their modules and notes are the same. */
bool rapt_check_same_model(const rapt_data_parallel *parallel, const rapt_data_parallel_config *config);

/* Gives the module rank 0's values. False on all ranks after an error on one. */
bool rapt_take_first_values(rapt_data_parallel *parallel);

/* The same of the buffers that a forward function changed on any rank: marks them, for the ranks to agree upon, and
 * gives them rank 0's values. */
void rapt_mark_changed_buffers(const rapt_data_parallel *parallel, int *marks);
bool rapt_take_changed_buffers(rapt_data_parallel *parallel, const int *marks);

/* Adds a text and a number to a hash (FNV-1a), which begins with 1. */
void rapt_hash_add(uint64_t *hash, const char *text, int64_t number);

/* An error on all ranks unless each has rank 0's hash: `difference` is what it then says. */
bool rapt_check_same_hash(const rapt_data_parallel *parallel, const char *op, uint64_t hash, const char *difference);

/* The same of the first numbers of what is to be saved and is alike on ranks whose models did not go apart. */
bool rapt_check_same_numbers(const rapt_data_parallel *parallel, const char *op, const rapt_archive *whole,
                             bool is_sharded);

/* Of texts, of the names and sizes of tensors, and of the first numbers of each, but the random state's: ranks may have
 * seeded by themselves. */
uint64_t rapt_hash_of_archive(const rapt_archive *archive);

/* Lists the parameters and makes the buckets; false after an error. */
bool rapt_buckets_new(rapt_data_parallel *parallel, int64_t bytes);
void rapt_buckets_free(rapt_data_parallel *parallel, bool keeps_slots);

/* An error that names a parameter which has another dtype than when they were listed; or also one which is trained now
 * and was not, or the other way round. */
bool rapt_check_dtypes(const rapt_data_parallel *parallel, const char *op);
bool rapt_check_trained(const rapt_data_parallel *parallel, const char *op);

/* An error between the first own part and the end of its step: memory of the buckets is in use. */
bool rapt_check_between_steps(const rapt_data_parallel *parallel, const char *op);

/* A part begins: all its gradients are awaited. */
void rapt_buckets_begin_part(rapt_data_parallel *parallel);

/* Takes the gradient of a parameter for the part that is under way. False after an error. */
bool rapt_buckets_take(void *parallel, rapt_tensor *parameter, rapt_tensor *gradient);

/* The part is over: what did not arrive is 0. Sharded gradients have then been summed over ranks. */
void rapt_buckets_end_part(rapt_data_parallel *parallel);

/* Gives the pieces that the sharded optimizer steps the values of the module. False after an error. */
bool rapt_take_pieces(rapt_data_parallel *parallel);

/* Gives up the sharded gradients of a step that failed. */
void rapt_buckets_drop(rapt_data_parallel *parallel);

/* Adds what a part counts, and tells all ranks. */
void rapt_totals_begin(rapt_data_parallel *parallel, rapt_totals part);

/* Goes on with what is under way; with `wait`, to the end. Errors are noted. */
void rapt_parcels_exchange(rapt_data_parallel *parallel, bool wait);

/* Whether nothing is on its way, into memory that MPI has been given. */
bool rapt_parcels_are_over(rapt_data_parallel *parallel);

/* The sum over ranks of a parcel, this rank's. A tensor of the innermost scope; NULL after an error. */
rapt_tensor *rapt_parcel_sum(const rapt_parcel *parcel);

/* Makes parameters their own numbers, from those of a bucket to before those of another. False after an error. */
bool rapt_numbers_of_parameters(const rapt_data_parallel *parallel, int bucket, int end);
void rapt_numbers_free(const rapt_data_parallel *parallel, int bucket, int end);

/* This rank's piece of the bucket's numbers. A tensor of the innermost scope; NULL after an error. */
rapt_tensor *rapt_bucket_cut(const rapt_data_parallel *parallel, const rapt_bucket *bucket);

/* Gives all ranks what each has as `given` in the buckets from `bucket` to before `end`: it is then in the parameters'
 * numbers. False after an error of MPI's, which may then still read what was given: that stays until the program
 * ends. */
bool rapt_buckets_spread(rapt_data_parallel *parallel, int bucket, int end);

#endif

/* Training on many machines, by MPI: every rank has the whole model and a part of each batch, or of each sequence. A
 * library of its own, librapt-mpi (pkg-config: rapt-mpi). */
#ifndef RAPT_MPI_H
#define RAPT_MPI_H

#include <mpi.h>

#include <rapt/checkpoint.h>
#include <rapt/ring.h>

RAPT_BEGIN_DECLS

/* A handler for rapt_on_error that prints the message with the rank's number and ends all ranks (MPI_Abort). Before
 * MPI_Init and behind MPI_Finalize it is rapt_exit_on_error. */
RAPT_API void rapt_abort_on_error(rapt_error_code code, const char *message);

/* A model that the ranks of a communicator train together. All functions below but rapt_data_parallel_part are called
 * by all ranks, in the same order, on the thread that initialized MPI (MPI_THREAD_FUNNELED will do). What fails on one
 * rank is an error on all, "rank 2: …", of code RAPT_ERROR_RANK; a rank that gives up before it has told the others
 * must end the program (rapt_abort_on_error, MPI_Abort), since they wait for it. */
typedef struct rapt_data_parallel rapt_data_parallel;

/* How the ranks share the work; all zeros is all defaults. */
typedef struct rapt_data_parallel_config {
    /* Into how many parts a batch is cut: the ranks, times a power of two; 0: the ranks. Gradients of parts are summed
     * by a tree of which ranks are branches, so that for 4 parts 1, 2 and 4 ranks get the same bits, unless a sharded
     * optimizer clips (rapt_data_parallel_step). More than one part a rank costs memory for log2 of them gradients
     * more (of pieces, where gradients are sharded). */
    int parts;
    int64_t bucket_bytes; /* gradients go out when so many of them are complete; 0: 4 MiB */
    /* Of gradients a rank keeps its 1 / ranks alone, for the optimizer that rapt_data_parallel_shard is given before
     * the first part. What backward has computed goes as soon as its bucket has gone out; beside it at most 4 buckets
     * are under way, of bucket_bytes each, twice. The bits are those without it, but with more than one part on each
     * of ranks whose number is no power of two. Costs: every part travels, not only the sum of a rank's, and backward
     * waits for the network where that is slower; but where attention goes across ranks it does not, and keeps what has
     * not gone out. */
    bool shards_gradients;
    const char *note; /* must be the same on all ranks, such as the options and the data's checksum; may be NULL */
} rapt_data_parallel_config;

/* Shares the module, which is to be the same on all ranks: names, shapes, dtypes, what is frozen, the configuration and
 * rapt_get_level are compared, and a difference is an error that names it. Parameters and buffers then take the values
 * of rank 0. The communicator is copied. NULL after an error. Behind rapt_module_cast it is to be made anew. */
RAPT_API rapt_data_parallel *rapt_data_parallel_new(MPI_Comm communicator, rapt_module *module,
                                                    const rapt_data_parallel_config *config);

/* Frees it, on all ranks, before MPI_Finalize; behind that it only frees memory. Of a step that is under way no rank
 * waits for another, which may have given up: the memory that messages go into or come from stays MPI's until the
 * program ends. NULL does nothing. */
RAPT_API void rapt_data_parallel_free(rapt_data_parallel *parallel);

/* A part of a batch: items from `first` to before `last`; none where they are the same. */
typedef struct rapt_part {
    int number; /* of all parts: random numbers that belong to the part, dropout's say, are seeded by step and number */
    int64_t first, last;
} rapt_part;

/* The parts that this rank works on, 1 or more; 0 and an error for NULL. */
RAPT_API int rapt_data_parallel_count_parts(const rapt_data_parallel *parallel);

/* The own-th of them, from 0 on, of a batch of so many items. All parts together are the batch, in its order; the
 * sizes of two differ by 1 at most. A part numbered −1 after an error. */
RAPT_API rapt_part rapt_data_parallel_part(const rapt_data_parallel *parallel, int own, int64_t items);

/* Goes backward from the loss of the next own part, in place of rapt_backward. The weight is what the part counts, as
 * for rapt_accumulate: of losses that are means, how many rows or tokens it is the mean of. A part that is empty has
 * weight 0, and no loss (NULL) or one whose gradients are 0: 0 times what is no number, as in a mean that is 0 / 0, is
 * an error. Where attention goes across ranks (the module has a ring) there is a loss all the same, through which the
 * gradient of the others goes, and NULL is an error. What is refused of one rank there the ranks of the last ring that
 * the module has are told, and each fails in its rapt_data_parallel_backward; not noticed is a loss, on one rank alone,
 * that does not come from that attention: the others wait for ever. The gradients of the last own part are sent while
 * backward still goes on. Gradients of leaves that are no parameters of the module are dropped. False after an error on
 * this rank, which does not end the step: the other parts, and rapt_data_parallel_finish, follow all the same. */
RAPT_API bool rapt_data_parallel_backward(rapt_data_parallel *parallel, rapt_tensor *loss, double weight);

/* After all own parts: gives each parameter the gradient of the mean loss of the whole batch, with the same bits on all
 * ranks, and the mean to *loss unless that is NULL. Parameters that no part reached have no gradient. Clipping and the
 * optimizer's step follow as on one machine. Gradients that a rapt_backward of one's own has left in the parameters
 * before are dropped. Buffers that forward changed on any rank, BatchNorm's running statistics, then have on all ranks
 * the values that rank 0's parts gave them, as with PyTorch's DistributedDataParallel. A parameter that was frozen, or
 * is trained again, since rapt_data_parallel_new is an error. That all ranks have the same weights is not looked at: a
 * rank whose optimizer's step fails, or has another learning rate, goes its own way, and rapt_data_parallel_save alone
 * notices. After an error, the same on all ranks, there are no gradients, and the next step begins anew. */
RAPT_API bool rapt_data_parallel_finish(rapt_data_parallel *parallel, double *loss);

/* Shards the optimizer's state: every rank keeps and steps one piece of each bucket, and has 1 / ranks of it. The
 * optimizer is one without parameters, rapt_adamw_new(NULL, …), of a kind that steps each number by itself (not Muon or
 * Adafactor); it gets this rank's pieces, "bucket.0" and so on, and outlives the rapt_data_parallel. Groups go by these
 * names. Before the first step, and an error between a step's first part and its finish; rapt_data_parallel_finish then
 * gives the parameters no gradients, and rapt_data_parallel_step makes each step. A parameter that no part reached
 * counts as one of gradient 0. False after an error; an optimizer that has got pieces by then is of no more use. */
RAPT_API bool rapt_data_parallel_shard(rapt_data_parallel *parallel, rapt_optimizer *optimizer);

/* Behind a rapt_data_parallel_finish that went well, once: clips by the norm of all gradients, which goes to *norm
 * unless that is NULL, steps the pieces, and gives all ranks the new values. Parameters that were changed since the
 * last step, on all ranks alike, are stepped from what they are now. The limit is above 0; INFINITY does not clip. The
 * norm is √Σ of the squares of the norms of the ranks' pieces, rank by rank: its last digits, and those of all weights
 * once it exceeds the limit, go by the number of ranks. False after an error; where that is of the step itself (no
 * memory, a norm that is not finite), neither a parameter nor what the optimizer keeps was changed on any rank. The
 * gradients are gone then, too. */
RAPT_API bool rapt_data_parallel_step(rapt_data_parallel *parallel, double limit, double *norm);

/* Writes a run as rapt_checkpoint_save does, by all ranks. To a path that ends in ".safetensors.index.json" each rank
 * writes a shard beside it, about 1 / ranks of the bytes (one whose share is nothing writes none), and rank 0 the index
 * when all are there; the older set, which has other names, as rapt_shard_set says, stays until then and goes after it.
 * So at any moment the index leads to one whole set. To any other path rank 0 writes one file. All ranks see the same
 * folder. Of a sharded optimizer the state is put together by parameter: with any number of ranks, sharded or not, and
 * by rapt_checkpoint_load in one process, what was written can be read. What the checkpoint has is to be the same on
 * all ranks; the random state is rank 0's. Compared with rank 0's are step, note, names, sizes, and the first 16
 * numbers of each weight, average and state of an optimizer that is not sharded: ranks that went apart, which
 * rapt_data_parallel_finish does not notice, are told here, and write nothing. With the optimizer, parameters that were
 * cast since rapt_data_parallel_new are an error, and where it is sharded also those that were frozen, or are trained
 * again. So is a call between a step's first part and its rapt_data_parallel_finish. False after an error, the same on
 * all ranks; an older checkpoint is then as it was. */
RAPT_API bool rapt_data_parallel_save(rapt_data_parallel *parallel, const char *path,
                                      const rapt_checkpoint *checkpoint);

/* Reads what rapt_data_parallel_save or rapt_checkpoint_save wrote, as rapt_checkpoint_load does; each rank maps the
 * files and takes what it needs of them. They may be files of its own: compared with rank 0's are the texts, and of
 * each tensor, such as the step, its name, how many numbers it has and the first 16 of these, but for those of the
 * random state; a difference is an error. Each rank's random state becomes that of its file, which is rank 0's where
 * rapt_data_parallel_save wrote it: ranks that seed by themselves do so again behind it. Parameters that were cast,
 * frozen or are trained again are errors as in rapt_data_parallel_save, behind rapt_data_parallel_shard also where the
 * checkpoint has no optimizer. Behind rapt_data_parallel_shard, where the optimizer is to be sharded. After an error,
 * the same on all ranks, some ranks may have loaded: the run must begin anew. */
RAPT_API bool rapt_data_parallel_load(rapt_data_parallel *parallel, const char *path, rapt_checkpoint *checkpoint);

/* --- sequences that are longer than one rank's memory --- */

/* A ring of a communicator's ranks, which share sequences of so many keys: for rapt_attention_set_ring, whose comment,
 * and rapt/ring.h, say who has what. Called by all ranks, as is all attention that uses it, forward and backward, on
 * the thread that initialized MPI. The communicator is copied. What fails on one rank, or shapes that differ between
 * ranks, are an error on all, and so is what fails in a model's forward, or in a backward pass, outside of attention; a
 * rank that gives up between two of these calls must end the program, as above. NULL after an error. Free it with
 * rapt_mpi_ring_free, after the graphs in which it is used and before MPI_Finalize. */
RAPT_API rapt_ring *rapt_mpi_ring_new(MPI_Comm communicator, int64_t length);
RAPT_API void rapt_mpi_ring_free(rapt_ring *ring);

RAPT_END_DECLS

#endif

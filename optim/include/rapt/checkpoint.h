/* A whole training run in one safetensors file: parameters, optimizer, random state, and where the run stood. */
#ifndef RAPT_CHECKPOINT_H
#define RAPT_CHECKPOINT_H

#include <rapt/average.h>
#include <rapt/loader.h>
#include <rapt/optimizer.h>
#include <rapt/watch.h>

RAPT_BEGIN_DECLS

/* What a run needs to go on as if it had never stopped. The pointers are to the caller's own objects. Gradients are not
 * in it: save between two steps, not amid an accumulation, of which a run that resumes would lose the parts before. */
typedef struct rapt_checkpoint {
    rapt_module *module;
    rapt_optimizer *optimizer; /* may be NULL; what a file has of one is then passed over */
    int64_t step;              /* the next step, 0 or more, below 2⁶² */
    rapt_tensor *order;        /* of the data, int64 (n); may be NULL */
    rapt_tensor *records;      /* numbers of the caller's, such as the losses so far, float64 (n); may be NULL */
    const char *note;          /* anything in words, such as the options of the run; may be NULL */
    rapt_average *average;     /* these may be NULL as the optimizer may */
    rapt_loader *loader;
    rapt_watch *watch; /* the state; options stay the caller's */
    rapt_plateau *plateau;
} rapt_checkpoint;

/* Writes the run, and the random state of the calling thread, so that at any moment the file is the old one or the
 * new one; a process that is killed meanwhile leaves "PATH.….tmp" beside it, which nobody reads. False after an
 * error. */
RAPT_API bool rapt_checkpoint_save(const char *path, const rapt_checkpoint *checkpoint);

/* Reads into the module, optimizer and random state; sets step, order and records (tensors of the innermost scope;
 * NULL when the file has none). note, when not NULL on entry, must equal the file's; so must the kinds of module and
 * optimizer, and the module's names. Everything is checked first; after an error (false) nothing has changed. */
RAPT_API bool rapt_checkpoint_load(const char *path, rapt_checkpoint *checkpoint);

/* The same to an archive, and from one: what rapt_checkpoint_save writes and rapt_checkpoint_load reads. The archive
 * shares parameters and state, it does not copy them. */
RAPT_API bool rapt_checkpoint_to_archive(const rapt_checkpoint *checkpoint, rapt_archive *archive);
RAPT_API bool rapt_checkpoint_from_archive(rapt_checkpoint *checkpoint, const rapt_archive *archive);

RAPT_END_DECLS

#endif

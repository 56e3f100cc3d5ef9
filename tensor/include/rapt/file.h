/* Tensors in files: safetensors, which PyTorch and Hugging Face read and write. */
#ifndef RAPT_FILE_H
#define RAPT_FILE_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* Named tensors and text metadata on their way to or from a file. */
typedef struct rapt_archive rapt_archive;

/* An empty archive; free it with rapt_archive_free. NULL when out of memory. */
RAPT_API rapt_archive *rapt_archive_new(void);
RAPT_API void rapt_archive_free(rapt_archive *archive);

/* Adds a tensor under a name that is not in use (the archive takes a share of it, no copy); metadata likewise. */
RAPT_API bool rapt_archive_add(rapt_archive *archive, const char *name, rapt_tensor *tensor);
RAPT_API bool rapt_archive_add_text(rapt_archive *archive, const char *key, const char *text);

/* The tensor of that name, owned by the archive; NULL and no error when there is none. */
RAPT_API rapt_tensor *rapt_archive_find(const rapt_archive *archive, const char *name);
RAPT_API const char *rapt_archive_find_text(const rapt_archive *archive, const char *key);

/* The keys of the texts, in the order of the file. NULL beyond the last. */
RAPT_API const char *rapt_archive_key(const rapt_archive *archive, int64_t index);

/* Entries in the order of the file; name and tensor stay the archive's. NULL beyond the last. */
RAPT_API int64_t rapt_archive_count(const rapt_archive *archive);
RAPT_API const char *rapt_archive_name(const rapt_archive *archive, int64_t index);
RAPT_API rapt_tensor *rapt_archive_tensor(const rapt_archive *archive, int64_t index);

/* The element type as a file has it: "F32", or "BF16" of what is kept as stored. NULL beyond the last. */
RAPT_API const char *rapt_archive_stored_type(const rapt_archive *archive, int64_t index);

/* Writes a safetensors file: beside the target first, synced, then renamed over it, so that a reader (or a crash at
 * any moment) sees the old file or the new one. A symbolic link stays, and what it leads to is replaced, or made. The
 * file keeps the permissions of the old one and, where the process may, owner and group; a new file follows the umask;
 * other hard links to the old file keep the old content. False after an error, for anything that is no regular file
 * (a folder, a device, a FIFO), for a file that the process may not write, and for a path that ends in ".json", which
 * would be read as an index; what was there is then as it was. */
RAPT_API bool rapt_save_safetensors(const char *path, const rapt_archive *archive);

/* Whether saving to that path can begin, found out by beginning: a file beside the target is made and removed. False
 * with the error that saving would give. For programs that are to know before hours of work. */
RAPT_API bool rapt_can_save(const char *path);

/* Reads a safetensors file, or with the path of an index ("model.safetensors.index.json") all the shards that it
 * names, which lie beside it; those that are not beside a link to an index are looked for beside what it leads to. An
 * index that another takes the place of meanwhile is an error. The files are untrusted: headers, names, dtypes,
 * shapes, offsets, overlaps and lengths are checked, and that each shard holds what the index says, no more and no
 * less. F16 and BF16 become float32. NULL after an error. */
RAPT_API rapt_archive *rapt_load_safetensors(const char *path);

/* The same without reading what is not looked at: tensors lie in the mapped file, are only read, and keep it mapped
 * after the archive is gone. F16 and BF16 are kept as stored: each rapt_archive_find or rapt_archive_tensor makes a
 * new float32 tensor of the innermost scope, and saving writes them as they were. A tensor whose place in the file is
 * not aligned is copied, so is a half-sized one of 8 axes, as float32, and on big-endian machines every one whose
 * elements have several bytes. The file must not become shorter meanwhile; one that rapt_save_safetensors replaces
 * stays as it was. */
RAPT_API rapt_archive *rapt_map_safetensors(const char *path);

/* Writes the archive in shards of at most so many bytes of tensors each (a larger tensor has one of its own), and an
 * index, whose path ends in ".safetensors.index.json": of "model.safetensors.index.json" the shards are
 * "model-00001-of-00002.safetensors" and so on, or, behind an older set, have a letter behind the numbers, as a
 * rapt_shard_set says. A set whose first shard is there is not written over for an hour. The index comes last, when
 * all shards are there, and then the older one's go: at any moment the index leads to one whole set, also where
 * several save at once, of whom the last one's stays. A link to an index stays, and the shards are beside what it
 * leads to. A process that is killed leaves shards, which one of the next 27 saves of as many removes when they are
 * an hour old and there is a whole index. False after an error; an older index and its shards are then as they were. */
RAPT_API bool rapt_save_safetensors_shards(const char *path, const rapt_archive *archive, int64_t most_bytes);

/* Writes the index of shards that lie beside it: so many names of files, without a folder, each with tensors that no
 * other has. Only what the index says is read of them. For programs that write shards by themselves, the index last:
 * one that is there belongs to shards that are. False after an error; an older index is then as it was. */
RAPT_API bool rapt_save_safetensors_index(const char *path, const char *const *shards, int count);

/* The names of shards beside the index "NAME.safetensors.index.json": the first of two is
 * "NAME-00001-of-00002.safetensors", or with a letter "NAME-00001-of-00002-a.safetensors". */
typedef struct rapt_shard_set {
    int count;   /* 0 to 99999 */
    char letter; /* a to z; 0: none */
} rapt_shard_set;

/* For programs that write a set of shards by themselves, each process one for example, and are not to write over the
 * one that is there: chooses names to which the index at that path, if there is one, does not lead, with the letter
 * behind that of its set (none, a to z, none again) or the next one that goes. The first shard is then there, empty,
 * so that nobody else gets these names for an hour; who gives up removes it. False after an error, as where that
 * file cannot be read; one that is no index leads to none. */
RAPT_API bool rapt_shard_set_choose(const char *path, int count, rapt_shard_set *set);

/* The path of a shard, from 1 on, which goes to the text. False after an error, as where so many bytes are too few. */
RAPT_API bool rapt_shard_set_path(const char *path, const rapt_shard_set *set, int number, char *text, size_t size);

/* Writes the index of a set whose shards are all there, as rapt_save_safetensors_index does, and then removes those
 * shards of the older index that have names of its sets. Whoever has them open or mapped keeps them; who has read the
 * older index and not yet opened all of them gets an error. False after an error; an older index is then as it was. */
RAPT_API bool rapt_shard_set_save_index(const char *path, const rapt_shard_set *set);

RAPT_END_DECLS

#endif

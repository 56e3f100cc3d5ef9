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

/* Entries in the order of the file; name and tensor stay the archive's. NULL beyond the last. */
RAPT_API int64_t rapt_archive_count(const rapt_archive *archive);
RAPT_API const char *rapt_archive_name(const rapt_archive *archive, int64_t index);
RAPT_API rapt_tensor *rapt_archive_tensor(const rapt_archive *archive, int64_t index);

/* Writes a safetensors file: beside the target first, synced, then renamed over it, so that a reader (or a crash at
 * any moment) sees the old file or the new one. A symbolic link stays, and what it leads to is replaced, or made. The
 * file keeps the permissions of the old one and, where the process may, owner and group; a new file follows the umask;
 * other hard links to the old file keep the old content. False after an error, for anything that is no regular file
 * (a folder, a device, a FIFO) and for a file that the process may not write; what was there is then as it was. */
RAPT_API bool rapt_save_safetensors(const char *path, const rapt_archive *archive);

/* Whether saving to that path can begin, found out by beginning: a file beside the target is made and removed. False
 * with the error that saving would give. For programs that are to know before hours of work. */
RAPT_API bool rapt_can_save(const char *path);

/* Reads a safetensors file. The file is untrusted: header, names, dtypes, shapes, offsets, overlaps and length are
 * checked. NULL after an error. */
RAPT_API rapt_archive *rapt_load_safetensors(const char *path);

RAPT_END_DECLS

#endif

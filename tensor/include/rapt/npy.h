/* Arrays in numpy's files: npy, one array, and npz, arrays by name. */
#ifndef RAPT_NPY_H
#define RAPT_NPY_H

#include <rapt/file.h>

RAPT_BEGIN_DECLS

/* Writes a tensor as an npy file of version 1.0, row-major, the lowest byte first. The file takes its place as those
 * of rapt_save_safetensors do. False after an error; what was there is then as it was. */
RAPT_API bool rapt_save_npy(const char *path, const rapt_tensor *tensor);

/* Reads an npy file (versions 1.0 to 3.0; f4, f8, i8, i4, u1 and b1 in either byte order). An array in Fortran's order
 * keeps it: the tensor has such strides. The file is untrusted: header, sizes and length are checked. NULL after an
 * error. */
RAPT_API rapt_tensor *rapt_load_npy(const char *path);

/* The same for all tensors of an archive: a zip file with a member NAME.npy for each, as numpy.savez writes it, not
 * compressed. Texts have no place in it: an archive that has some is an error. */
RAPT_API bool rapt_save_npz(const char *path, const rapt_archive *archive);

/* Reads what numpy.savez writes. Directory, sizes, overlaps and check sums of the zip file are checked. Compressed
 * members (numpy.savez_compressed) are an error that says so. */
RAPT_API rapt_archive *rapt_load_npz(const char *path);

RAPT_END_DECLS

#endif

/* The zip records that npz files are made of. */
#ifndef RAPT_TENSOR_NPZ_H
#define RAPT_TENSOR_NPZ_H

/* What records begin with. */
#define RAPT_ZIP_LOCAL 0x04034b50   /* a member: 30 bytes, its name, an extra field and its bytes */
#define RAPT_ZIP_ENTRY 0x02014b50   /* a member in the directory: 46 bytes, name, extra field and comment */
#define RAPT_ZIP_END_64 0x06064b50  /* the directory's place, in 64 bits */
#define RAPT_ZIP_LOCATOR 0x07064b50 /* the place of that record: 20 bytes, right before the next */
#define RAPT_ZIP_END 0x06054b50     /* the directory's place: 22 bytes and a comment, the end of the file */

enum {
    RAPT_ZIP_LOCAL_SIZE = 30,
    RAPT_ZIP_ENTRY_SIZE = 46,
    RAPT_ZIP_END_64_SIZE = 56,
    RAPT_ZIP_LOCATOR_SIZE = 20,
    RAPT_ZIP_END_SIZE = 22,
    RAPT_ZIP_EXTRA_64 = 1,   /* the extra field with sizes of 64 bits */
    RAPT_ZIP_VERSION = 45,   /* of the format, that knows those */
    RAPT_ZIP_UTF8 = 1 << 11, /* a flag: the name is UTF-8 */
    RAPT_ZIP_ENCRYPTED = 1,  /* a flag */
    RAPT_ZIP_LONGEST_NAME = 65535,
};

#endif

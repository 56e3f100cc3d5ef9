/* Files of a published model. */
#include "folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <rapt.h>

#include "files.h"

char *folder_read(const char *folder, const char *name, size_t *size)
{
    char path[PATH_MAX + FILENAME_MAX]; /* one that is too long is refused by the system */
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = file_read(path, size);
    if (!text) rapt_fail(RAPT_ERROR_FILE, "gpt2", "cannot read %s: %s", path, strerror(errno));
    return text;
}

bool folder_fail(const char *folder, const char *name, const rapt_json *json)
{
    return rapt_fail(RAPT_ERROR_FORMAT, "gpt2", "%s/%s, byte %lld: %s", folder, name,
                     (long long)(json->next - json->begin), json->error);
}

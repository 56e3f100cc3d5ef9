/* What stands for safetensors in a build without Jansson. */
#include <rapt/error.h>
#include <rapt/file.h>

static const char reason[] = "built without Jansson; configure with -Dsafetensors=enabled to have it";

bool rapt_save_safetensors(const char *path, const rapt_archive *archive)
{
    (void)path, (void)archive;
    return rapt_fail(RAPT_ERROR_UNSUPPORTED, "save_safetensors", "%s", reason);
}

rapt_archive *rapt_load_safetensors(const char *path)
{
    (void)path;
    rapt_fail(RAPT_ERROR_UNSUPPORTED, "load_safetensors", "%s", reason);
    return NULL;
}

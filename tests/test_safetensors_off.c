/* A build without Jansson says so. */
#include "expect.h"

Test(safetensors_off, the_error_names_the_option)
{
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_save_safetensors("/tmp/rapt-never-written", archive));
    expect_error(RAPT_ERROR_UNSUPPORTED, "-Dsafetensors=enabled");
    cr_expect_null(rapt_load_safetensors("/tmp/rapt-never-written"));
    expect_error(RAPT_ERROR_UNSUPPORTED, "-Dsafetensors=enabled");
    rapt_archive_free(archive);
}

/* A build without MPI: one process. */
#include <stdio.h>

#include "alone.h"
#include "files.h"
#include "interrupt.h"

bool ranks_begin(const char *program, int64_t parts)
{
    if (parts > 0) fprintf(stderr, "%s: --parts needs MPI, which this program was built without\n", program);
    return parts == 0;
}

bool ranks_is_first(void)
{
    return true;
}

bool ranks_share(rapt_module *module, const char *note)
{
    (void)module, (void)note;
    return true;
}

bool ranks_backward(int64_t step, int64_t items, ranks_loss *loss_of, void *context, double *loss)
{
    (void)step;
    return alone_backward(items, loss_of, context, loss);
}

int ranks_signal(void)
{
    return interrupt_signal();
}

bool ranks_can_save(const char *program, const char *path)
{
    return file_can_be_saved(program, path);
}

bool ranks_save(const char *path, const rapt_checkpoint *checkpoint)
{
    return rapt_checkpoint_save(path, checkpoint);
}

bool ranks_load(const char *path, rapt_checkpoint *checkpoint)
{
    return rapt_checkpoint_load(path, checkpoint);
}

void ranks_end(void)
{
}

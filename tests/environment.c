/* Computes a logarithm of −1, with its gradient, and says how and what became of it, for check_environment.sh. A child
 * of it ends as it does. */
#include <rapt.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    printf("%s\n", rapt_describe_runtime());
    fflush(stdout);
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), -1));
    const bool good = rapt_backward(rapt_sum(rapt_log(x), RAPT_ALL_AXES, false));
    printf("%s\n", good ? "NaN" : rapt_error());
    fflush(stdout);
    int status = 1;
    const pid_t child = fork();
    if (child == 0) return 0;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

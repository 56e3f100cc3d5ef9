/* Runs a program once for each call that it makes of the system for a file of its own, with that call failing: EIO,
 * ENOSPC, EINTR, or only a part is read or written. It must end with success and the files of a run without failure, or
 * with status 1 and a sentence; each file is then the old one or the new one, and no other stays. A write, a sync or a
 * rename that fails for good is an error. Usage: failing_calls [--every N] FOLDER PROGRAM [ARGUMENT]...; FOLDER has the
 * old files. For Linux on x86-64. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_folder.h"

enum { MOST_FILES = 256, MOST_PROCESSES = 8, FAILURES_SHOWN = 10, NOT_TRACED = 125, SKIPPED = 77 };

enum kind { FAILS_EIO, FAILS_ENOSPC, FAILS_EINTR, SHORT, KINDS };
static const char *const kind_names[KINDS] = {"EIO", "ENOSPC", "EINTR", "a part"};
static const int errors[KINDS] = {EIO, ENOSPC, EINTR, 0};

static const char *folder, *old_files;
static char **program;

/* --- one run --- */

struct process {
    pid_t id;
    bool is_inside; /* of a call */
    bool is_ours[MOST_FILES];
    long call, file; /* the call that it is in */
    bool fails;
};

static struct {
    long calls, failing;
    enum kind kind;
    bool must_be_error;
    const char *name;
    struct process processes[MOST_PROCESSES];
} run;

static struct process *process_of(pid_t id)
{
    struct process *unused = NULL;
    for (int i = 0; i < MOST_PROCESSES; i++) {
        if (run.processes[i].id == id) return &run.processes[i];
        if (run.processes[i].id == 0 && !unused) unused = &run.processes[i];
    }
    if (!unused) give_up("too many processes");
    *unused = (struct process){.id = id};
    return unused;
}

/* What the program writes lies in the folder where it runs; libraries and fonts do not. */
static bool is_in_folder(pid_t id, unsigned long long address)
{
    char path[256] = "";
    /* Up to the end of a page, behind which there may be nothing. */
    size_t size = 4096 - (size_t)(address & 4095);
    if (size > sizeof path - 1) size = sizeof path - 1;
    const struct iovec to = {path, size}, from = {(void *)(uintptr_t)address, size};
    if (process_vm_readv(id, &to, 1, &from, 1, 0) <= 0) return false;
    return path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0;
}

static bool has_file(const struct process *p, long file)
{
    return file >= 0 && file < MOST_FILES && p->is_ours[file];
}

/* Is it a call that may fail here? */
static const char *name_of_call(struct process *p, const struct user_regs_struct *r)
{
    const long file = (long)r->rdi;
    switch (r->orig_rax) {
    case SYS_open:
        return is_in_folder(p->id, r->rdi) ? "open" : NULL;
    case SYS_openat:
        return is_in_folder(p->id, r->rsi) ? "open" : NULL;
    case SYS_read:
        return has_file(p, file) ? "read" : NULL;
    case SYS_write:
        return has_file(p, file) ? "write" : NULL;
    case SYS_fsync:
        return has_file(p, file) ? "fsync" : NULL;
    case SYS_ftruncate:
        return has_file(p, file) ? "ftruncate" : NULL;
    case SYS_lseek:
        return has_file(p, file) ? "lseek" : NULL;
    case SYS_fchmod:
        return has_file(p, file) ? "fchmod" : NULL;
    case SYS_close:
        return has_file(p, file) ? "close" : NULL;
    case SYS_rename:
        return is_in_folder(p->id, r->rdi) ? "rename" : NULL;
    case SYS_renameat:
    case SYS_renameat2:
        return has_file(p, file) || is_in_folder(p->id, r->rsi) ? "rename" : NULL;
    case SYS_mkdir:
        return is_in_folder(p->id, r->rdi) ? "mkdir" : NULL;
    default:
        return NULL;
    }
}

/* After which a file is not what it should be, whatever comes: for these an error is expected. */
static bool loses_data(const char *name)
{
    return strcmp(name, "write") == 0 || strcmp(name, "fsync") == 0 || strcmp(name, "rename") == 0;
}

static void enter(struct process *p)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, p->id, NULL, &r);
    p->call = (long)r.orig_rax;
    p->file = (long)r.rdi;
    p->fails = false;
    const char *name = name_of_call(p, &r);
    if (!name || ++run.calls != run.failing) {
        if (!name && (p->call == SYS_open || p->call == SYS_openat)) p->call = -1;
        return;
    }
    run.name = name;
    const bool moves_bytes = p->call == SYS_read || p->call == SYS_write;
    if (run.kind == SHORT) {
        if (moves_bytes && r.rdx > 1) r.rdx = r.rdx / 2;
    } else {
        p->fails = true;
        run.must_be_error = run.kind != FAILS_EINTR && loses_data(name);
        /* a file is closed whatever close says */
        if (p->call != SYS_close) r.orig_rax = (unsigned long long)-1;
    }
    ptrace(PTRACE_SETREGS, p->id, NULL, &r);
}

static void leave(struct process *p)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, p->id, NULL, &r);
    if (p->fails) {
        r.rax = (unsigned long long)-errors[run.kind];
        ptrace(PTRACE_SETREGS, p->id, NULL, &r);
    }
    const long result = (long)r.rax;
    if ((p->call == SYS_open || p->call == SYS_openat) && result >= 0 && result < MOST_FILES) p->is_ours[result] = true;
    if (p->call == SYS_close && p->file >= 0 && p->file < MOST_FILES) p->is_ours[p->file] = false;
}

static void become_program(void)
{
    const int said = open(path_of("said", ""), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (said < 0 || dup2(said, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0 || close(said) != 0) _exit(126);
    if (chdir(path_of("run", "")) != 0) _exit(126);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(NOT_TRACED);
    raise(SIGSTOP);
    execv(program[0], program);
    _exit(127);
}

static int go_on(pid_t id, int signal)
{
    return (int)ptrace(PTRACE_SYSCALL, id, NULL, signal);
}

/* The program's status, with the call of that number failing (0: none). */
static int run_program(long failing, enum kind kind)
{
    int status = 0;
    memset(&run, 0, sizeof run);
    run.failing = failing;
    run.kind = kind;
    const pid_t child = fork();
    if (child == 0) become_program();
    if (child < 0 || waitpid(child, &status, 0) != child) give_up("cannot run a program");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_TRACED) {
        printf("skipped: no process may be traced here\n");
        exit(SKIPPED);
    }
    ptrace(PTRACE_SETOPTIONS, child, NULL,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    go_on(child, 0);
    for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0;) {
        struct process *p = process_of(id);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            p->id = 0;
            if (id == child) return status;
            continue;
        }
        const int signal = WSTOPSIG(status), event = status >> 16;
        if (signal == (SIGTRAP | 0x80)) {
            p->is_inside = !p->is_inside;
            if (p->is_inside)
                enter(p);
            else
                leave(p);
        } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
            unsigned long made;
            ptrace(PTRACE_GETEVENTMSG, id, NULL, &made);
            memcpy(process_of((pid_t)made)->is_ours, p->is_ours, sizeof p->is_ours);
        }
        go_on(id, signal == SIGTRAP || signal == SIGSTOP || signal == (SIGTRAP | 0x80) ? 0 : signal);
    }
    give_up("the program is lost");
}

/* --- files --- */

/* Files that grow row by row are whole to a line's end; those with times in them are others in each run. */
enum promise { WHOLE, LINES, ANY };

static enum promise promise_of(const char *name)
{
    const char *ending = strrchr(name, '.');
    if (strstr(name, ".trace") || !ending) return ANY;
    return strcmp(ending, ".csv") == 0 || strcmp(ending, ".jsonl") == 0 || strcmp(ending, ".html") == 0 ? LINES : WHOLE;
}

static bool check_file(const char *name, bool succeeded)
{
    char old[4096];
    const enum promise promise = promise_of(name);
    snprintf(old, sizeof old, "%s/%s", old_files, name);
    const bool is_new = is_same(path_of("run", name), path_of("new", name));
    if (promise == ANY || is_new || (!succeeded && is_same(path_of("run", name), old))) return true;
    if (!succeeded && promise == LINES && begins_with(path_of("new", name), path_of("run", name)) &&
        ends_with_line(path_of("run", name)))
        return true;
    printf("  %s is %s\n", name, is_there(path_of("new", name)) ? "damaged" : "left behind");
    return false;
}

static bool is_left_well(const char *part, const char *name)
{
    (void)part;
    return check_file(name, false);
}

static bool is_made_well(const char *part, const char *name)
{
    (void)part;
    return check_file(name, true);
}

static bool is_kept(const char *part, const char *name)
{
    (void)part;
    char old[4096];
    snprintf(old, sizeof old, "%s/%s", old_files, name);
    return promise_of(name) != WHOLE || is_there(path_of("run", name)) || !is_there(old) ||
           (printf("  %s is gone\n", name), false);
}

static bool is_there_too(const char *part, const char *name)
{
    (void)part;
    return is_there(path_of("run", name)) || (printf("  %s is not there\n", name), false);
}

static bool check_files(bool succeeded)
{
    const int bad = for_each_file("run", succeeded ? is_made_well : is_left_well);
    return for_each_file("new", succeeded ? is_there_too : is_kept) + bad == 0;
}

/* --- all failures --- */

static bool ended_well(int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return printf("  status %x\n", (unsigned)status), false;
    const bool succeeded = WEXITSTATUS(status) == 0;
    if (succeeded && run.must_be_error) return printf("  nobody is told\n"), false;
    const struct bytes said = read_file(path_of("said", ""));
    free(said.data);
    if (!succeeded && said.size == 0) return printf("  an error without a sentence\n"), false;
    return check_files(succeeded);
}

int main(int count, char **arguments)
{
    int i = 1;
    const bool has_every = count > 2 && strcmp(arguments[1], "--every") == 0;
    const long every = has_every ? atol(arguments[2]) : 1;
    i += 2 * has_every;
    if (count < i + 2 || every < 1) {
        fprintf(stderr, "usage: %s [--every N] FOLDER PROGRAM [ARGUMENT]...\n", arguments[0]);
        return 2;
    }
    old_files = realpath(arguments[i], NULL);
    program = arguments + i + 1;
    program[0] = realpath(program[0], NULL);
    if (!old_files || !program[0]) give_up("failing_calls");
    folder = run_folder_make("files");
    run_folder_fill(old_files);
    if (run_program(0, SHORT) != 0) return printf("%s fails as it is\n", program[0]), 1;
    const long calls = run.calls;
    if (rename(path_of("run", ""), path_of("new", "")) != 0) give_up("new");
    long runs = 0, told = 0, bad = 0;
    for (long n = 1; n <= calls; n += every)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            run_folder_fill(old_files);
            const int status = run_program(n, kind);
            runs++;
            told += WIFEXITED(status) && WEXITSTATUS(status) == 1;
            if (ended_well(status)) continue;
            const struct bytes said = read_file(path_of("said", ""));
            if (++bad <= FAILURES_SHOWN)
                printf("  call %ld (%s), %s: %s\n", n, run.name ? run.name : "none", kind_names[kind],
                       said.data ? said.data : "");
            free(said.data);
        }
    run_folder_remove();
    printf("%s: %ld calls, %ld runs, %ld ended with an error, %ld badly\n", program[0], calls, runs, told, bad);
    return calls < 5 || bad > 0;
}

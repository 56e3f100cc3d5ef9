/* A test in a process of its own, where it may crash. */
#ifndef RAPT_TESTS_PLAIN_APART_H
#define RAPT_TESTS_PLAIN_APART_H

#include <criterion/criterion.h>

/* How a process ended: by a signal, or with a status. */
typedef struct plain_end {
    int signal, status;
} plain_end;

/* Runs the test and waits. Where processes fork, the child calls `run` and ends with its result; elsewhere the program
 * is started with the arguments "--alone", suite and name. */
plain_end plain_run_apart(const plain_test *test, int (*run)(const plain_test *test), const char *program);

#endif

/* main.c - the tests of a folder as one program: runs the one whose name it is given.
 *
 * cmake/kl_test.cmake compiles each with its `main` named like the test, and exports it, so that no
 * list of tests is kept here.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int (*run)(void) = argc == 2 ? (int (*)(void))dlsym(RTLD_DEFAULT, argv[1]) : NULL;
    if (!run) return fprintf(stderr, "usage: %s NAME, a test of this folder\n", argv[0]), 2;
    return run();
}

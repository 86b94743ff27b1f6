/* Tests of task.c, and every task and foreign document that lies in this repository.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "fixtures.h"

static void put(fixture *f, const char *path, const char *text) {
    const kl_str folder = kli_fs_dirname(f->arena, path);
    assert_ok(kli_fs_mkdirs(folder.ptr, &f->error));
    assert_ok(kli_fs_write(path, kl_str_of(text), &f->error));
}

static const char *hash_of(fixture *f, const char *path) {
    kl_task *t = NULL;
    assert_ok(kl_task_load(&t, f->arena, path, &f->error));
    assert_int_equal(strlen(t->hash), 64);
    return t->hash;
}

static void put_task(fixture *f, const char *folder) {
    kli_fs_remove_tree(folder);
    put(f, kli_fs_join(f->arena, folder, "definition.json").ptr,
        definition_with(f, AXES, INPUTS, OUTPUTS, ""));
    put(f, kli_fs_join(f->arena, folder, "workloads.jsonl").ptr, WORKLOAD "\n");
}

static void test_task_load__reads_a_folder(void **state) {
    fixture *f = *state;
    kl_task *t = NULL;
    put_task(f, "one");
    assert_ok(kl_task_load(&t, f->arena, "one", &f->error));
    assert_str(t->dir, "one");
    assert_int_equal(t->n_workloads, 1);
    assert_string_equal(hash_of(f, "one/definition.json"), t->hash);
    assert_int_equal(rename("one/workloads.jsonl", "one/workload.jsonl"), 0);
    assert_string_equal(hash_of(f, "one"), t->hash);
}

static void test_task_load__says_what_is_missing(void **state) {
    fixture *f = *state;
    kl_task *t = NULL;
    assert_err(KL_ENOENT, kl_task_load(&t, f->arena, "nowhere", &f->error));
    put_task(f, "two");
    assert_int_equal(remove("two/workloads.jsonl"), 0);
    assert_err(KL_ENOENT, kl_task_load(&t, f->arena, "two", &f->error));
    assert_int_equal(remove("two/definition.json"), 0);
    assert_err(KL_ENOENT, kl_task_load(&t, f->arena, "two", &f->error));
    put_task(f, "two");
    put(f, "two/definition.json",
        definition_with(
            f, AXES, INPUTS, OUTPUTS,
            ", \"klineage\": {\"baselines\": [{\"name\": \"b\", \"file\": \"baseline/b.c\"}]}"));
    assert_err(KL_ENOENT, kl_task_load(&t, f->arena, "two", &f->error));
    assert_contains(f->error.message, "baseline/b.c");
    assert_null(t);
}

static void test_task_load__finds_the_workloads_of_a_data_set(void **state) {
    fixture *f = *state;
    kl_task *t = NULL;
    put(f, "set/definitions/op/t.json", definition_with(f, AXES, INPUTS, OUTPUTS, ""));
    put(f, "set/workloads/op/t.jsonl",
        "{\"definition\": \"t\", \"workload\": " WORKLOAD ", \"solution\": null}");
    assert_ok(kl_task_load(&t, f->arena, "set/definitions/op/t.json", &f->error));
    assert_int_equal(t->n_workloads, 1);
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir("set/definitions/op"), 0);
    assert_ok(kl_task_load(&t, f->arena, "t.json", &f->error));
    assert_int_equal(chdir(here), 0);
    put(f, "set/definitions/op/lonely.json", definition_with(f, AXES, INPUTS, OUTPUTS, ""));
    assert_err(KL_ENOENT, kl_task_load(&t, f->arena, "set/definitions/op/lonely.json", &f->error));
}

static void test_task_load__hashes_what_decides_a_verdict(void **state) {
    fixture *f = *state;
    put_task(f, "three");
    const char *bare = hash_of(f, "three");
    static const char *const counted[] = {"three/oracle.c", "three/naive.cl", "three/baseline/a.c",
                                          "three/baseline/deep/b.h"};
    for (size_t i = 0; i < KL_COUNT(counted); i++) {
        put(f, counted[i], "int x;");
        const char *first = hash_of(f, "three");
        assert_string_not_equal(first, bare);
        put(f, counted[i], "int y;");
        const char *second = hash_of(f, "three");
        assert_string_not_equal(first, second);
        bare = second;
    }
    put(f, "three/README.md", "prose");
    put(f, "three/notes.oracle.c", "prose");
    put(f, "three/naive.triton.py", "a start");
    assert_string_equal(hash_of(f, "three"), bare);
    put(f, "three/workloads.jsonl", WORKLOAD " \n");
    assert_string_not_equal(hash_of(f, "three"), bare);
}

static void test_task_load__refuses_huge_files(void **state) {
    fixture *f = *state;
    kl_task *t = NULL;
    put_task(f, "four");
    FILE *file = fopen("four/definition.json", "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 100 << 20), 0);
    (void)fclose(file);
    assert_err(KL_ELIMIT, kl_task_load(&t, f->arena, "four", &f->error));
    put_task(f, "four");
    kl_buf lines = {0};
    for (int i = 0; i <= KL_MAX_WORKLOADS; i++)
        kl_buf_printf(&lines, "{\"uuid\": \"u%d\", \"axes\": {\"M\": 3, \"N\": 5}}\n", i);
    put(f, "four/workloads.jsonl", lines.ptr);
    assert_err(KL_ELIMIT, kl_task_load(&t, f->arena, "four", &f->error));
    lines.ptr[strlen(lines.ptr) - 1] = '\0';
    *strrchr(lines.ptr, '\n') = '\0';
    put(f, "four/workloads.jsonl", lines.ptr);
    assert_ok(kl_task_load(&t, f->arena, "four", &f->error));
    assert_int_equal(t->n_workloads, KL_MAX_WORKLOADS);
    kl_buf_fini(&lines);
}

static void test_task_find__looks_at_path_environment_and_here(void **state) {
    fixture *f = *state;
    kl_str path = {0};
    put_task(f, "five");
    put_task(f, "elsewhere/six");
    put_task(f, "tasks/seven");
    assert_ok(kl_task_find(&path, f->arena, "five", &f->error));
    assert_str(path, "five");
    assert_ok(kl_task_find(&path, f->arena, "./five/definition.json", &f->error));
    assert_ok(kl_task_find(&path, f->arena, "seven", &f->error));
    assert_err(KL_ENOENT, kl_task_find(&path, f->arena, "six", &f->error));
    assert_true(f->error.hint[0] != '\0');
    assert_int_equal(setenv("KLINEAGE_TASKS", "elsewhere", 1), 0);
    assert_ok(kl_task_find(&path, f->arena, "six", &f->error));
    assert_str(path, "elsewhere/six");
    assert_int_equal(unsetenv("KLINEAGE_TASKS"), 0);
    assert_err(KL_ENOENT, kl_task_find(&path, f->arena, "no-such-task", &f->error));
}

/* Fills every input of every small workload of the task at `path`. */
static int try_task(fixture *f, const char *path) {
    kl_task *t = NULL;
    if (kl_task_load(&t, f->arena, path, &f->error) != KL_OK) {
        print_error("%s: %s: %s\n%s\n", path, f->error.where, f->error.message, f->error.detail);
        return 1;
    }
    for (int k = 0; k < t->n_workloads; k++)
        for (int i = 0; i < t->n_inputs; i++) {
            kl_shape shape;
            assert_ok(kl_task_shape(&shape, t, &t->workloads[k], i, &f->error));
            if (shape.elems > 200000 || t->workloads[k].dists[i].kind == KL_DIST_CUSTOM) continue;
            void *data = malloc(shape.bytes);
            assert_ok(kl_task_fill(data, t, &t->workloads[k], i, 7, 1, 2, &f->error));
            free(data);
        }
    return 0;
}

static void test_task_load__reads_every_task_of_the_repository(void **state) {
    fixture *f = *state;
    kl_str *names;
    size_t n;
    int bad = 0;
    assert_ok(kli_fs_list(&names, &n, f->arena, KL_TEST_ROOT "/tasks", &f->error));
    for (size_t i = 0; i < n; i++) {
        const kl_str path = kli_fs_join(f->arena, KL_TEST_ROOT "/tasks", names[i].ptr);
        if (kli_fs_exists(kli_fs_join(f->arena, path.ptr, "definition.json").ptr))
            bad += try_task(f, path.ptr);
    }
    assert_int_equal(bad, 0);
}

/* Every definition below `folder`: a folder with definition.json, or a .json file below a folder
 * named definitions. */
static int try_below(fixture *f, const char *folder, bool in_definitions) {
    kl_str *names;
    size_t n;
    int bad = 0;
    if (kli_fs_exists(kli_fs_join(f->arena, folder, "definition.json").ptr))
        return try_task(f, folder);
    assert_ok(kli_fs_list(&names, &n, f->arena, folder, &f->error));
    for (size_t i = 0; i < n; i++) {
        const kl_str path = kli_fs_join(f->arena, folder, names[i].ptr);
        const bool definitions = in_definitions || kl_str_eq(names[i], KL_S("definitions"));
        if (kli_fs_is_dir(path.ptr))
            bad += try_below(f, path.ptr, definitions);
        else if (in_definitions && kl_str_ends(names[i], KL_S(".json")))
            bad += try_task(f, path.ptr);
    }
    return bad;
}

static void test_task_load__reads_foreign_documents_unchanged(void **state) {
    fixture *f = *state;
    if (kli_fs_is_dir(KL_TEST_ROOT "/tests/data/foreign"))
        assert_int_equal(try_below(f, KL_TEST_ROOT "/tests/data/foreign", false), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_load__reads_a_folder),
        test_of(test_task_load__says_what_is_missing),
        test_of(test_task_load__finds_the_workloads_of_a_data_set),
        test_of(test_task_load__hashes_what_decides_a_verdict),
        test_of(test_task_load__refuses_huge_files),
        test_of(test_task_find__looks_at_path_environment_and_here),
        test_of(test_task_load__reads_every_task_of_the_repository),
        test_of(test_task_load__reads_foreign_documents_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of mailbox.c: what is asked, what counts as an answer.  SPDX-License-Identifier: Apache-2.0
 */
#include "base/fs.h"
#include "model_impl.h"
#include "kit/kit.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static kl_model *model;

static int set_up(void **state) {
    kit_set_up(state);
    kli_fs_remove_tree("box");
    return kl_model_open(&model, "mailbox:box", &e);
}

static int tear_down(void **state) {
    kl_model_close(model);
    return kit_tear_down(state);
}

static const kl_message TURNS[] = {{KL_ROLE_SYSTEM, {"Be terse.\n", 10}, true},
                                   {KL_ROLE_USER, {"Simplify.", 9}, false},
                                   {KL_ROLE_ASSISTANT, {"", 0}, false},
                                   {KL_ROLE_USER, {"../../etc --- key: x", 20}, false}};

static kl_err ask(kl_reply *r, const char *key) {
    const kl_request q = {.messages = TURNS,
                          .n = 4,
                          .max_tokens = 500,
                          .purpose = "deoptimize",
                          .key = key,
                          .slot = "gemm/walk/0"};
    return kl_model_ask(r, model, arena, &q, &e);
}

static void answer(kl_str text) { assert_ok(kli_fs_write("box/replies/" KEY ".md", text, &e)); }

static void test_model_mailbox__the_question_is_a_readable_file(void **state) {
    (void)state;
    kl_reply r;
    kl_str text;
    assert_err(KL_PENDING, ask(&r, KEY));
    assert_int_equal(r.billed_microusd, 0);
    assert_contains(e.hint, "requests/" KEY ".md");
    assert_ok(kli_fs_read(&text, arena, "box/requests/" KEY ".md", 1 << 20, &e));
    assert_string_equal(
        text.ptr,
        "---\nschema: klineage/request\nversion: 1\nkey: " KEY
        "\npurpose: deoptimize\nslot: gemm/walk/0\nmax_tokens: 500\n"
        "answer: ../replies/" KEY ".md\n---\n\n"
        "Answer the last turn: write the answer, and nothing else, into `../replies/" KEY
        ".md`.\n\n"
        "# Turn 1 of 4: system\n\nBe terse.\n\n# Turn 2 of 4: user\n\nSimplify.\n\n# Turn 3 of 4: "
        "assistant\n\n(nothing)\n\n"
        "# Turn 4 of 4: user\n\n../../etc --- key: x\n\n");
    assert_err(KL_PENDING, ask(&r, KEY)); /* asking again changes nothing */
}

static void test_model_mailbox__the_answer_is_taken_byte_for_byte(void **state) {
    (void)state;
    kl_reply r;
    answer(KL_S("\r\n ACTION: x\xff\x1b \n\n"));
    assert_ok(ask(&r, KEY));
    assert_str(r.text, "\r\n ACTION: x\xff\x1b \n\n");
    assert_int_equal(r.stop, KL_STOP_END);
    assert_true(r.usage.estimated);
    assert_int_equal(r.usage.input, (10 + 9 + 20 + 3) / 4);
    assert_int_equal(r.usage.output, 5);
}

static void test_model_mailbox__what_is_no_answer(void **state) {
    (void)state;
    kl_reply r;
    answer(KL_S(""));
    assert_err(KL_EINVAL, ask(&r, KEY));
    assert_contains(e.message, "empty");
    answer(KL_S("a\0b"));
    assert_err(KL_EINVAL, ask(&r, KEY));
    assert_contains(e.message, "NUL");
    assert_contains(e.hint, "rewrite");
    char *large = KL_ARRAY(arena, char, KL_MAX_REPLY_BYTES + 1);
    memset(large, 'x', KL_MAX_REPLY_BYTES + 1);
    answer((kl_str){large, KL_MAX_REPLY_BYTES + 1});
    assert_err(KL_ELIMIT, ask(&r, KEY));
    answer((kl_str){large, KL_MAX_REPLY_BYTES});
    assert_ok(ask(&r, KEY));
    assert_int_equal(r.text.len, KL_MAX_REPLY_BYTES);
}

static void test_model_mailbox__links_pipes_and_folders_are_no_answer(void **state) {
    (void)state;
    const char *path = "box/replies/" KEY ".md";
    kl_reply r;
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_err(KL_EINVAL, ask(&r, KEY));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_err(KL_EINVAL, ask(&r, KEY));
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_err(KL_EINVAL, ask(&r, KEY));
}

static void test_model_mailbox__names_come_from_keys_alone(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", "../../x", "00112233", KEY "0",
        "0011223344556677889900112233445566778899001122334455667788990011/./"};
    kl_reply r;
    for (size_t i = 0; i < KL_COUNT(bad); i++) assert_err(KL_EINVAL, ask(&r, bad[i]));
    kl_str *names;
    size_t n;
    assert_err(KL_PENDING, ask(&r, NULL)); /* outside of a run: the conversation's own hash */
    assert_ok(kli_fs_list(&names, &n, arena, "box/requests", &e));
    assert_int_equal(n, 1);
    assert_int_equal(names[0].len, 67);
}

/* Written by another process while it is read: never the first half alone. */
static void test_model_mailbox__an_answer_that_grows_is_waited_for(void **state) {
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        FILE *f = fopen("box/replies/" KEY ".md", "w");
        for (int i = 0; f && i < 6; i++) {
            fputs("part\n", f);
            fflush(f);
            usleep(150000);
        }
        _exit(f ? fclose(f) : 1);
    }
    kl_reply r;
    kl_err err;
    do err = ask(&r, KEY);
    while (err == KL_PENDING && usleep(10000) == 0);
    assert_int_equal(err, KL_OK);
    assert_str(r.text, "part\npart\npart\npart\npart\npart\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_model_mailbox__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_question_is_a_readable_file),
        TEST(the_answer_is_taken_byte_for_byte),
        TEST(what_is_no_answer),
        TEST(links_pipes_and_folders_are_no_answer),
        TEST(names_come_from_keys_alone),
        TEST(an_answer_that_grows_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

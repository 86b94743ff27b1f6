/* Tests of hash.c.  The two digests are the examples of FIPS 180-4.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "base/hash.h"
#include "base/test.h"

static void test_base_hash__matches_the_published_digests(void **state) {
    (void)state;
    assert_string_equal(kli_hash_of(KL_S("abc")).hex,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(kli_hash_of((kl_str){0}).hex,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static kl_hash of_two(kl_str a, kl_str b) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, a);
    kli_hasher_add(&h, b);
    return kli_hasher_end(&h);
}

static void test_base_hash__parts_keep_their_borders(void **state) {
    (void)state;
    kl_hash one = of_two(KL_S("ab"), KL_S("c")), two = of_two(KL_S("a"), KL_S("bc"));
    assert_string_not_equal(one.hex, two.hex);
    assert_string_equal(one.hex, of_two(KL_S("ab"), KL_S("c")).hex);
    assert_string_not_equal(of_two(KL_S(""), KL_S("x")).hex, of_two(KL_S("x"), KL_S("")).hex);
}

static void test_base_hash__bulk_sees_every_byte(void **state) {
    (void)state;
    unsigned char block[1000] = {0};
    uint64_t plain = kli_hash_bulk(block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = 1;
        assert_true(kli_hash_bulk(block, sizeof block) != plain);
        block[i] = 0;
    }
    assert_true(kli_hash_bulk(block, sizeof block) == plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_hash__matches_the_published_digests),
        cmocka_unit_test(test_base_hash__parts_keep_their_borders),
        cmocka_unit_test(test_base_hash__bulk_sees_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

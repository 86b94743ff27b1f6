/* library.c - the folder of cards: DIR/<status>/<name>/{SKILL.md,evidence.json}.
 *
 * The folder is the library: it can be read, reviewed and merged with git.  A broken card is named
 * and left out, never guessed at.  Writing goes into the folder of the card's status and takes it
 * out of every other.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- find -------------------------------------------------------------------------------- */

kl_err kl_library_find(kl_str *dir, kl_arena *a, const char *requested, kl_error *e) {
    const char *named = requested ? requested : getenv("KLINEAGE_LIBRARY");
    if (named && *named) return *dir = kl_arena_copy(a, kl_str_of(named)), KL_OK;
    kl_str at = kli_fs_self_dir(a);
    for (int up = 0; up < 4; up++, at = kli_fs_dirname(a, at.ptr)) {
        *dir = kli_fs_join(a, at.ptr, "library");
        if (kli_fs_is_dir(dir->ptr)) return KL_OK;
        *dir = kli_fs_join(a, at.ptr, "share/klineage/library");
        if (kli_fs_is_dir(dir->ptr)) return KL_OK;
    }
    *dir = KL_S("library");
    if (kli_fs_is_dir("library")) return KL_OK;
    kl_fail(e, KL_ENOENT, "library",
            "no library of SkillCards found, neither here nor above the program");
    return kl_hint(e, "name one with --library DIR or $KLINEAGE_LIBRARY; klineage lift creates it");
}

/* ---- load -------------------------------------------------------------------------------- */

static int library_by_name(const void *x, const void *y) {
    const kl_card *a = x, *b = y;
    int order = strcmp(a->name.ptr, b->name.ptr);
    return order ? order : (int)a->status - (int)b->status;
}

static void add_broken(kl_library *l, kl_str folder, const kl_error *why, kl_arena *a) {
    kl_str reason = kl_arena_copy(a, kl_str_of(why->message));
    *KL_PUSH(a, l->broken, l->n_broken) = (kl_broken_card){folder, reason};
}

kl_err kli_library_card_in(kl_card **out, kl_arena *a, const char *folder, kl_card_status status,
                           kl_error *e) {
    kl_err err = kl_card_load(out, a, folder, e);
    if (err || (*out)->status == status) return err;
    return kl_fail(e, KL_EINVAL, folder, "lies among the %s cards and says that it is %s",
                   kl_card_status_name(status), kl_card_status_name((*out)->status));
}

static void load_card(kl_library *l, kl_arena *a, const char *folder, kl_card_status status) {
    kl_error why = {0};
    kl_card *c;
    if (kli_library_card_in(&c, a, folder, status, &why)) {
        add_broken(l, kl_arena_copy(a, kl_str_of(folder)), &why, a);
        return;
    }
    *KL_PUSH(a, l->cards, l->n_cards) = *c;
    if (c->edited && c->status == KL_CARD_ADMITTED) kli_names_add(&l->edited, a, c->name);
    const kl_str faults = kl_card_faults(a, c);
    if (faults.len) *KL_PUSH(a, l->faults, l->n_faults) = (kl_broken_card){c->name, faults};
}

static kl_err load_status(kl_library *l, kl_arena *a, kl_card_status status, kl_error *e) {
    kl_str *names;
    size_t n;
    kl_str dir = kli_fs_join(a, l->dir.ptr, kl_card_status_name(status));
    kl_err err = kli_fs_list(&names, &n, a, dir.ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        kl_str folder = kli_fs_join(a, dir.ptr, names[i].ptr);
        if (kli_fs_is_dir(folder.ptr)) load_card(l, a, folder.ptr, status);
    }
    return err;
}

static int64_t written_ns(const kl_library *l, kl_arena *a, const kl_card *c) {
    struct stat st;
    const kl_str folder = kli_library_folder(a, l->dir.ptr, c->status, c->name);
    if (stat(kli_fs_join(a, folder.ptr, "SKILL.md").ptr, &st)) return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* A write that was killed leaves the card in the folder of its old status too: the newer one
 * counts, and the next write removes the other. */
static void drop_older(kl_library *l, kl_arena *a) {
    int kept = 0;
    for (int i = 0; i < l->n_cards; i++) {
        const bool again = kept > 0 && kl_str_eq(l->cards[kept - 1].name, l->cards[i].name);
        if (!again)
            l->cards[kept++] = l->cards[i];
        else if (written_ns(l, a, &l->cards[i]) >= written_ns(l, a, &l->cards[kept - 1]))
            l->cards[kept - 1] = l->cards[i];
    }
    l->n_cards = kept;
}

kl_err kli_library_there(const char *dir, kl_error *e) {
    if (kli_fs_is_dir(dir)) return KL_OK;
    kl_fail(e, KL_ENOENT, dir, "no such library");
    return kl_hint(e, "create one with klineage lift LINEAGE --library %s", dir);
}

kl_err kl_library_load(kl_library **out, kl_arena *a, const char *dir, kl_error *e) {
    kl_library *l = *out = KL_NEW(a, kl_library);
    l->dir = kl_arena_copy(a, kl_str_of(dir));
    kl_err err = kli_library_there(dir, e);
    for (int s = KL_CARD_LIFTED; !err && s <= KL_CARD_RETIRED; s++)
        err = load_status(l, a, (kl_card_status)s, e);
    if (l->n_cards) qsort(l->cards, (size_t)l->n_cards, sizeof *l->cards, library_by_name);
    drop_older(l, a);
    return err;
}

const kl_card *kl_library_card_each(const kl_library *l, int i) {
    return i >= 0 && i < l->n_cards ? &l->cards[i] : NULL;
}

const kl_card *kl_library_card(const kl_library *l, kl_str name) {
    if (l->index) return kli_index_card_named(l->index, name);
    for (int i = 0; i < l->n_cards; i++)
        if (kl_str_eq(l->cards[i].name, name)) return &l->cards[i];
    return NULL;
}

kl_str kl_library_id(const kl_library *l, kl_arena *a) {
    kl_hasher h;
    if (l->index) return kli_index_id(l->index);
    kli_hasher_init(&h);
    for (int i = 0; i < l->n_cards; i++)
        if (kli_card_usable(&l->cards[i])) kli_hasher_add(&h, kl_str_of(l->cards[i].body_hash));
    return kl_arena_copy(a, kl_str_of(kli_hasher_end(&h).hex));
}

/* ---- write ------------------------------------------------------------------------------- */

kl_str kli_library_folder(kl_arena *a, const char *dir, kl_card_status status, kl_str name) {
    return kl_arena_printf(a, "%s/%s/%.*s", dir, kl_card_status_name(status), KL_STR_ARG(name));
}

/* The time of the folder of its status says that a card in it was written: what an index of many
 * cards looks at. */
static void leave_time(kl_arena *a, const char *folder) {
    (void)utimensat(AT_FDCWD, kli_fs_dirname(a, folder).ptr, NULL, 0);
}

static kl_err write_files(const char *folder, const kl_card *c, kl_arena *a, kl_error *e) {
    kl_buf skill = {0}, evidence = {0};
    kl_card_render(c, &skill, &evidence);
    kl_err err =
        skill.len > KL_MAX_CARD_BYTES
            ? kl_fail(e, KL_ELIMIT, folder, "a card holds at most %u bytes, and this one has %zu",
                      KL_MAX_CARD_BYTES, skill.len)
            : kli_fs_mkdirs(folder, e);
    if (!err)
        err = kli_fs_write(kli_fs_join(a, folder, "evidence.json").ptr, kl_buf_str(&evidence), e);
    if (!err) err = kli_fs_write(kli_fs_join(a, folder, "SKILL.md").ptr, kl_buf_str(&skill), e);
    kl_buf_fini(&skill);
    kl_buf_fini(&evidence);
    return err;
}

kl_err kli_library_write(const char *dir, kl_card *c, kl_error *e) {
    kl_arena *a = kl_arena_new();
    const kl_str name = c->name, mine = kli_library_folder(a, dir, c->status, name);
    KL_ASSERT(kl_str_eq(name, kli_slug(a, name)));
    kl_err err = write_files(mine.ptr, c, a, e);
    for (int s = KL_CARD_LIFTED; !err && s <= KL_CARD_RETIRED; s++)
        if (s != (int)c->status)
            kli_fs_remove_tree(kli_library_folder(a, dir, (kl_card_status)s, name).ptr);
    leave_time(a, mine.ptr);
    kl_arena_free(a);
    return err;
}

static bool is_admitted(const char *dir, kl_str name) {
    kl_arena *a = kl_arena_new();
    const kl_str folder = kli_library_folder(a, dir, KL_CARD_ADMITTED, name);
    const bool there = kli_fs_exists(kli_fs_join(a, folder.ptr, "SKILL.md").ptr);
    kl_arena_free(a);
    return there;
}

kl_err kl_library_put(const char *dir, kl_card *c, kl_error *e) {
    if (c->status == KL_CARD_ADMITTED)
        return kl_fail(e, KL_EINVAL, c->name.ptr, "only klineage admit writes an admitted card");
    if (c->status != KL_CARD_RETIRED && is_admitted(dir, c->name)) {
        kl_fail(e, KL_EINVAL, c->name.ptr,
                "an admitted card has this name, and a candidate cannot replace it");
        return kl_hint(e, "klineage card show %.*s; use another --library DIR to keep both",
                       KL_STR_ARG(c->name));
    }
    return kli_library_write(dir, c, e);
}

/* copy_plugin.c - y = x, enqueued on the stream as a vendor library would; or done at once by the
 * host, which no graph can see (HOST 1).  HOST 2: a library that cannot be opened.  The test writes
 * the number before it.  SPDX-License-Identifier: Apache-2.0 */
#include <klineage/plugin.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
static int prepared;
static int (*copy)(unsigned long, unsigned long, size_t, void *);
int kl_plugin_open(void **s, char *why, size_t n) {
    if (HOST == 2) abort();
    void *l = dlopen(getenv("KLINEAGE_LIBCUDA"), RTLD_NOW), *f;
    *s = NULL;
    f = l ? dlsym(l, "cuMemcpyDtoDAsync_v2") : NULL;
    memcpy(&copy, &f, sizeof f);
    if (!f) snprintf(why, n, "no library");
    return f == NULL;
}
int kl_plugin_prepare(void *s, const kl_plugin_call *c, char *why, size_t n) {
    (void)s;
    prepared++;
    if (c->n_tensors != 3 || c->tensors[0].dims[0] != 1000 ||
        *(float *)c->tensors[1].data != 2.5f) {
        snprintf(why, n, "bad call");
        return 1;
    }
    return 0;
}
int kl_plugin_run(void *s, const kl_plugin_call *c) {
    (void)s;
    if (HOST) return memcpy(c->tensors[2].data, c->tensors[0].data, 4000) == NULL;
    return copy((unsigned long)c->tensors[2].data, (unsigned long)c->tensors[0].data, 4000,
                c->stream);
}
const char *kl_plugin_describe(void *s) {
    static char text[64];
    (void)s;
    snprintf(text, sizeof text, "copies 1.0, prepared %d", prepared);
    return text;
}

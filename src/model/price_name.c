/* price_name.c - what its maker calls a model that another seller lists under a name of his own.
 *
 *   anthropic/claude-opus-4.6:beta                    OpenRouter    claude-opus-4-6
 *   us-east5/claude-opus-4-5@20251101                 Vertex        claude-opus-4-5, regional
 *   us-east-1/global.anthropic.claude-opus-4-6-v1:0   Bedrock       claude-opus-4-6
 *   us-east-1/us.anthropic.claude-opus-4-6-v1:0       Bedrock       claude-opus-4-6, regional
 *
 * Only names that say whose model it is: `somebody/claude-opus-4-6` stays unknown, and what is
 * unknown is refused.  Endpoints in one region cost a tenth more than global ones ("Pricing",
 * Third-party platform pricing, platform.claude.com); older models, where they do not, are charged
 * it too, because a price may be too high and not too low. Not here: the table (price.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <stdio.h>
#include <string.h>

static bool price_name_starts(const char *s, const char *with) {
    return !strncmp(s, with, strlen(with));
}

/* A region of a cloud: "us-east5/", "europe-west1/", "us/", "eu/", or "global/". */
static bool is_place(const char *name, size_t len) {
    static const char *const WIDE[] = {"global/", "us/", "eu/"};
    for (size_t i = 0; i < KL_COUNT(WIDE); i++)
        if (price_name_starts(name, WIDE[i])) return true;
    return len > 2 && name[len] == '/' && name[len - 1] >= '0' && name[len - 1] <= '9' &&
           memchr(name, '-', len) && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* OpenRouter: a vendor's own models.  Behind a colon stands a variant; what it writes with dots the
 * vendor writes with dashes. */
static bool of_vendor(kli_maker_name *out, const char *model) {
    static const char *const VENDORS[][2] = {
        {"anthropic/", "claude-"}, {"openai/", "gpt-"}, {"google/", "gemini-"}};
    for (size_t i = 0; i < KL_COUNT(VENDORS); i++) {
        const char *name = model + strlen(VENDORS[i][0]);
        if (!price_name_starts(model, VENDORS[i][0]) || !price_name_starts(name, VENDORS[i][1]))
            continue;
        snprintf(out->bare, sizeof out->bare, "%.*s", (int)strcspn(name, ":"), name);
        for (char *c = out->bare; i == 0 && *c; c++)
            if (*c == '.') *c = '-';
        return true;
    }
    return false;
}

/* Vertex: a snapshot's day behind an @ is none of the name. */
static bool of_vertex(kli_maker_name *out, const char *model) {
    const size_t place = strcspn(model, "/");
    const char *name = model + place + 1;
    if (!is_place(model, place) || !price_name_starts(name, "claude-")) return false;
    snprintf(out->bare, sizeof out->bare, "%.*s", (int)strcspn(name, "@"), name);
    out->regional = !price_name_starts(model, "global/");
    return true;
}

/* Bedrock: [global.|us.|...]anthropic.NAME[-DAY][-vN[:N]] */
static bool of_bedrock(kli_maker_name *out, const char *model) {
    const size_t place = strcspn(model, "/");
    const char *maker = strstr(model, "anthropic.claude-");
    if (!is_place(model, place) || !maker || (maker != model + place + 1 && maker[-1] != '.'))
        return false;
    snprintf(out->bare, sizeof out->bare, "%s", maker + strlen("anthropic."));
    char *version = strstr(out->bare, "-v");
    if (version && version[2 + strspn(version + 2, "0123456789:")] == '\0') *version = '\0';
    out->regional = !price_name_starts(model + place + 1, "global.");
    return true;
}

kli_maker_name kli_price_name(const char *model) {
    kli_maker_name out = {{0}, false};
    if (strlen(model) >= sizeof out.bare) return out;
    (void)(of_vendor(&out, model) || of_vertex(&out, model) || of_bedrock(&out, model));
    return out;
}

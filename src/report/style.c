/* style.c - how the page looks: one style sheet, for a phone, a wide screen, light, dark and paper.
 *
 * Nothing is fetched and no script is needed.  Colours have their names in colours.def; a figure is
 * there twice, drawn wide and narrow, and one of them is shown.  A table that is wider than its
 * place scrolls there: its first column stays, and a shadow says that there is more.  Paper has no
 * use for what is folded, so that stays folded.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include <stdio.h>
#include <string.h>

/* Lines of the style sheet, in the order of the page. */
static const char *const style_rules[] = {
    "*{box-sizing:border-box}",
    "body{font:1rem/1.55 system-ui,sans-serif;color:var(--ink);background:var(--page);"
    "max-width:64rem;margin:0 auto;padding:1.25rem 1rem 4rem;overflow-wrap:break-word}",
    "h1,h2,h3,h4{line-height:1.25;margin:0 0 .5rem}",
    "h1{font-size:1.05rem;font-weight:600;color:var(--soft)}",
    "h2{font-size:1.35rem;margin-top:3rem;padding-top:.75rem;border-top:1px solid var(--rule)}",
    "h3{font-size:1.1rem;margin-top:2rem}",
    "h4{font-size:1rem;margin-top:1.5rem}",
    ".lead,p,li,figure{max-width:54rem}p,ul,ol{margin:.5rem 0 "
    "1rem}ul,ol{padding-left:1.25rem}li{margin:.2rem 0}",
    "header .lead a,header li a,header .missing{white-space:nowrap}",
    ".lead{font-size:1.25rem;line-height:1.45;margin:.25rem 0 1rem}",
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem "
    "1.25rem;list-style:none;padding:0;margin:1.25rem "
    "0 1.5rem}",
    "nav li{margin:0}nav a{display:inline-block;padding:.25rem 0}",
    "a{color:var(--link)}a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:2px "
    "solid var(--link);outline-offset:2px}",
    ".note,figcaption{color:var(--soft);font-size:.875rem}.missing{color:var(--soft)}",
    ".yes{color:var(--good)}.no{color:var(--bad)}.so{color:var(--soft)}",
    "code,pre{font:.85rem/1.5 ui-monospace,monospace}",
    "pre{overflow-x:auto;background:var(--panel);padding:.75rem;white-space:pre-wrap;"
    "overflow-wrap:anywhere}",
    "summary{cursor:pointer;padding:.25rem 0}details{margin:.25rem "
    "0}:target{background:var(--mark)}",
    "figure{margin:1.5rem 0}figure svg{display:block;width:100%;height:auto}.wide{display:none}"
    ".narrow{max-width:34rem}figcaption{margin-top:.5rem}",
    "table{border-collapse:collapse;width:100%;font-size:.875rem;line-height:1.4}",
    "th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid "
    "var(--rule);vertical-align:top}",
    "thead th{color:var(--soft);font-weight:600;vertical-align:bottom}tbody th{font-weight:600}",
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}"
    "td.w{min-width:12rem}td.many{white-space:normal;min-width:11rem}",
    "th:first-child,td:first-child{padding-left:0}td a{text-decoration-color:var(--rule);"
    "text-underline-offset:.2em}tbody th .so{font-weight:400}",
    ".scroll{overflow-x:auto;margin:1rem 0 .5rem;background:linear-gradient(90deg,var(--page) "
    "30%,transparent) 0 0/2.5rem 100% no-repeat local,linear-gradient(270deg,var(--page) "
    "30%,transparent) 100% 0/2.5rem 100% no-repeat local,linear-gradient(90deg,var(--rule),"
    "transparent) 0 0/1rem 100% no-repeat,linear-gradient(270deg,var(--rule),transparent) 100% "
    "0/1rem 100% no-repeat}",
    ".facts{width:auto;max-width:100%;margin:1rem 0 .5rem}.facts "
    "th{color:var(--soft);font-weight:400}"
    ".facts td.n{text-align:left;white-space:normal}",
    ".share{background:linear-gradient(var(--bar) 0 0) 0 100%/var(--part) var(--tried) "
    "no-repeat;padding-bottom:.6rem;print-color-adjust:exact}",
    "@media(min-width:46rem){.wide{display:block}.narrow{display:none}.lead{font-size:1.4rem}"
    "h2{font-size:1.5rem}}",
    "@media print{body{max-width:none;padding:0;font-size:10pt}.wide{display:block}.narrow,nav{"
    "display:none}.scroll{overflow:visible;background:none}table{font-size:7.5pt}td.n{white-space:"
    "normal}td.w,td.many{min-width:0}th,td{padding:.2rem .35rem}a{color:inherit;text-decoration:"
    "none}h2{margin-top:1.5rem}h1,h2,h3,h4,summary{break-after:avoid}figure "
    "svg{max-height:11cm}figure,tr{break-inside:avoid}"
    "pre{break-inside:auto}thead{display:table-header-group}}",
};

typedef struct {
    const char *name, *light, *dark;
} style_colour;

static const style_colour style_colours[] = {
#define KL_COLOUR(name, light, dark) {#name, light, dark},
#define KL_GROUND KL_COLOUR
#define KL_SHAPE KL_COLOUR
#define KL_FAINT KL_COLOUR
#include "report/colours.def"
};

static void colour_lines(kl_buf *out, bool dark) {
    kl_buf_printf(out, ":root{color-scheme:%s", dark ? "dark" : "light");
    for (size_t i = 0; i < KL_COUNT(style_colours); i++)
        kl_buf_printf(out, ";--%s:%s", style_colours[i].name,
                      dark ? style_colours[i].dark : style_colours[i].light);
    kl_buf_printf(out, "}");
}

void kli_style(kl_buf *out) {
    kl_buf_printf(out, "<style>\n");
    colour_lines(out, false);
    kl_buf_printf(out, "\n@media screen and (prefers-color-scheme:dark){");
    colour_lines(out, true);
    kl_buf_printf(out, "}\n");
    for (size_t i = 0; i < KL_COUNT(style_rules); i++) kl_buf_printf(out, "%s\n", style_rules[i]);
    kl_buf_printf(out, "</style>\n");
}

const char *kli_colour(const char *name) {
    for (size_t i = 0; i < KL_COUNT(style_colours); i++)
        if (strcmp(style_colours[i].name, name) == 0) return style_colours[i].light;
    KL_ASSERT(!"a colour of colours.def");
    return "";
}

/* The name of the colour whose red, green and blue these are on light ground; NULL when it has
 * none. */
const char *kli_colour_name(int red, int green, int blue) {
    char text[16];
    snprintf(text, sizeof text, "#%02x%02x%02x", red & 255, green & 255, blue & 255);
    for (size_t i = 0; i < KL_COUNT(style_colours); i++)
        if (strcmp(style_colours[i].light, text) == 0) return style_colours[i].name;
    return NULL;
}

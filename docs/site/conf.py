"""conf.py - the documentation as a site: Sphinx reads the pages as they are, by MyST.  `./run site` builds build/site.

tools/site-source copies the pages and what they link to beside this file, so that every relative link is the same in the
repository and here.  The order is that of navigation.md.  SPDX-License-Identifier: Apache-2.0
"""
project = "klineage"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as the repository's viewer makes them
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]  # pages may begin with any heading; a block of C may be a part of one
exclude_patterns = ["library/admitted/*/*.txt"]
html_theme = "furo"
html_title = "klineage"
html_show_copyright = html_show_sphinx = False
html_copy_source = False
html_extra_path = ["llms.txt"]

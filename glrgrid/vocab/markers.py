"""Added tokens that are marks of a format: ``<think>``, ``<|fim_middle|>``, ``[TOOL_CALLS]``.

Tokenizers add tokens for two reasons. Some are text like any other that is worth a token: runs of spaces, words, in
Gemma the tags of HTML. Others mark something, and mean nothing if they turn up inside of a string. Only some of the
latter are flagged as special, so the rest is told by its looks.
"""

from __future__ import annotations

import re

__all__ = ["is_marker"]

_MARKER = re.compile(r"</?[\w|｜@/]\S*|\[/?@?[^\W\d]\w*@?\]|[|｜]\S+[|｜]")

_HTML = re.compile(
    r"a|abbr|address|area|article|aside|audio|b|bdi|bdo|blockquote|body|br|button|canvas|caption|center|"
    r"cite|code|col|colgroup|data|dd|del|details|dfn|div|dl|dt|em|embed|figcaption|figure|footer|form|h1|"
    r"h2|h3|h4|h5|h6|head|header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|mark|meta|"
    r"nav|object|ol|option|p|picture|pre|q|section|select|small|span|strong|style|sub|summary|sup|svg|"
    r"table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|var|video|wbr"
)
"""Elements of HTML, ``script`` and ``s`` left out: they are more often marks."""


def is_marker(text: str) -> bool:
    """Whether an added token looks like a mark of a format, and not like text.

    Examples
    --------
    >>> [text for text in ("<think>", "<|im_sep|>", "[TOOL_CALLS]", "<dsml:") if not is_marker(text)]
    []
    >>> [text for text in ("  ", "naïve", "<table>", "</h1>", "<=", "[0]") if is_marker(text)]
    []
    """
    return _MARKER.fullmatch(text) is not None and not _HTML.fullmatch(text.strip("</>"))

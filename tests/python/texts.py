"""Texts to encode: scripts, emoji, combining marks, white space, control characters and any code point."""

from __future__ import annotations

import random


def random_texts(number: int) -> list[str]:
    """Some fixed texts, and ``number`` random ones: always the same."""
    source = random.Random(1)
    pieces = [
        *"abcXYZ019 \t\n\r.,;:'\"()[]{}_-+*/\\%$#@!?<>=&|^~`",
        *"éèüßñçøåÆİıſ¡¿©®\u00a0\u00ad",
        *"数据库查询東京데이터キーボードαβγДанныеשלוםمرحباनमस्तेสวัสดี",
        *"😀🚀𝔸𐍈\U0010ffff\ue000\ufffd\ufeff\uffff",
        *"\x00\x01\x07\x1b\x7f\x80\x9f\u2028\u2029\u3000",
        "e\u0301",
        "a\u0323\u0307",
        "\u1112\u1161\u11ab",
        "👩‍💻",
        "👨‍👩‍👧‍👦",
        "👋🏽",
        "🇫🇷",
        "❤️",
        " SELECT",
        " the",
        '{"id": 1}',
        "\r\n\r\n",
        "    ",
        "don't",
        "12345",
    ]
    texts = ["", " ", "  leading", "trailing  ", "\n", "Ġa Ċ Ã©", *pieces]
    for _ in range(number):
        if source.random() < 0.5:
            text = "".join(source.choices(pieces, k=source.randrange(1, 40)))
        else:
            points = (source.randrange(1, 0x110000) for _ in range(source.randrange(1, 20)))
            text = "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
        texts.append(text)
    return texts

"""Write the bundled vocabulary, ``glrgrid/data/default.tokenizer.json``.

A seeded generator makes up a text (SQL, JSON, prose, code, other scripts) from the word lists below, and
byte-level BPE is trained on it. The same version of ``tokenizers`` writes the same file every time. Usage::

    python tools/train_default_vocab.py [--check] [output]

``--check`` writes nothing and fails if the file on disk differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SEED = 20240229
VOCAB_SIZE = 8_000
DOCUMENTS = 60_000
SPECIAL_TOKENS = ["<|endoftext|>", "<|pad|>"]
OUTPUT = Path(__file__).resolve().parent.parent / "glrgrid" / "data" / "default.tokenizer.json"

SPLIT = (
    r"[^\s\p{L}\p{N}]?\p{L}+"  # a word with the one mark before it, as in _id or "key
    r"| \p{L}+"
    r"| ?\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+"
    r"|\n[ \t]*"  # a line break with the indentation after it
    r"|[^\S\n]+(?=[^\S\n])"
    r"|\s"
)


def listed(words: str) -> list[str]:
    return words.split()


FUNCTION_WORDS = listed("""
the of and to a in is that it for was on with as be by at this from are or an have not but which they
you were his her all their one there has been would more when if who will no out so up said what its
about into than them can only other new some could time these two may then do first any my now such like
our over man even most made after also did many before must through back years where much your way well
down should because each just those people how too little state good very make world still own see men
work long get here between both life being under never day same another know while last might us great
old year off come since against go came right used take three few without again place around however
home small found
""")

NOUNS = listed("""
user name order product customer account date time price type status category item total amount city
country state address email phone number value code title description employee department salary manager
company project team member group role student course grade teacher school class score exam event
message comment post article author book page image file folder session token key index table column row
record list set map node edge tree path link label tag text word line note invoice payment method card
bank balance transaction transfer fee tax discount currency rate quantity unit stock inventory warehouse
supplier vendor shipment delivery carrier store region district location zone street building room floor
hotel booking reservation ticket seat flight airport airline route station train vehicle car driver trip
distance speed engine player game match season league coach stadium goal point rank record winner round
singer concert song album artist track genre band movie film actor director studio rating review channel
series episode show network show doctor patient hospital nurse visit diagnosis treatment drug dose test
result sample sensor reading measurement temperature pressure humidity weight height length width depth
area volume size color shape material brand model version release build branch commit issue task
priority owner assignee deadline plan budget cost revenue profit margin sale campaign lead contact
client contract policy claim risk loan asset share market trade ticker exchange order open close high
low volume device server host port request response error warning log level trace metric counter gauge
alert rule permission license profile setting option feature flag language locale nation population
capital river mountain island lake ocean continent year month week day hour minute second birth age
gender family parent child husband wife friend animal pet dog cat horse bird fish plant flower tree farm
crop field county museum visitor exhibition party election candidate vote representative government
president law court case judge document draft template form question answer survey poll choice reason
cause effect source target origin destination start end begin stop limit offset count sum average
minimum maximum ratio percent level degree step stage phase cycle period interval
""")

VERBS = listed("""
create update delete select insert read write open close start stop run send receive load save find
search filter sort merge split join group count build test check verify validate parse print show hide
add remove set get put push pull move copy change replace rename accept reject allow deny grant revoke
request return call handle process compute measure compare match contain include exclude follow lead
reach leave stay keep hold give take bring carry cover cross draw drive enter express fail finish gather
grow guess hear help hope improve increase install keep learn listen live look manage mark mean meet
mention need notice offer order own pay plan play prepare present produce protect prove provide reduce
refer remain remember repeat report require rest result rise save seem sell serve share sign speak spend
stand state study suggest support suppose teach tell think travel treat trust try turn understand use
visit wait walk want watch win wish wonder work worry
""")

ADJECTIVES = listed("""
active available average basic best better big blue bright cancelled central certain clean clear cold
common complete completed complex correct current daily dark deep default different direct dry early
easy empty enabled equal exact expired external fair false fast final fine flat foreign free fresh full
general global green happy hard heavy hidden high hot human important internal invalid large late latest
left light local long low main major medium middle minor modern monthly narrow natural new next null old
open optional original partial pending perfect physical poor possible previous primary private public
quick quiet random rare ready real recent red regular related remote required rich right safe second
serious sharp shipped short similar simple single slow small smooth social soft solid special specific
standard strange strong sweet tall temporary thick thin third tiny total true typical unique unknown
upper useful valid various vital warm weak weekly white whole wide wild yearly yellow young
""")

NAMES = listed("""
Alice Bob Carol David Emma Frank Grace Henry Irene Jack Karen Liam Maria Nina Oscar Paula Quentin Rosa
Samuel Tina Victor Wendy Xavier Yara Zoe Anna Ben Chris Diana Eric Fiona George Hannah Ivan Julia Kevin
Laura Mike Nora Oliver Peter Rachel Sara Thomas Smith Johnson Brown Miller Davis Wilson Moore Taylor
Anderson Jackson White Harris Martin Thompson Garcia Martinez Robinson Clark Lewis Lee Walker Hall Allen
Young King Wright Scott Green Baker Adams Nelson Hill Campbell Mitchell Roberts London Paris Berlin
Madrid Rome Vienna Tokyo Beijing Sydney Toronto Chicago Boston Denver Dallas Seattle Austin Lisbon
Dublin Oslo Prague Warsaw Athens Cairo Delhi Mumbai Lima Bogota Mexico Brazil Canada France Germany
Spain Italy Japan China India Australia England Ireland Poland Sweden Norway Finland Denmark Greece
Egypt America Europe Asia Africa Monday Tuesday Wednesday Thursday Friday Saturday Sunday January
February March April June July August September October November December
""")

ACCENTED = listed("""
café naïve façade résumé déjà élève garçon très être où forêt hôtel cœur über schön Straße Größe für
Übung Mädchen niño año señor mañana español corazón también São não coração informação Ångström
smörgåsbord fjörð žluťoučký kůň příliš łódź zażółć gęślą jaźń İstanbul çiçek güneş Zürich Malmö Kraków
Bogotá México Perú Québec Montréal España Köln München
""")

OTHER_SCRIPTS = listed("""
привет мир данные таблица запрос пользователь имя город Москва Киев γειά κόσμος δεδομένα πίνακας Αθήνα
שלום עולם مرحبا بالعالم بيانات नमस्ते दुनिया डेटा สวัสดี 你好 世界 数据 数据库 查询 用户 名称 城市 北京
上海 中国 订单 时间 学生 公司 我们 可以 こんにちは 世界 データ テーブル 東京 大阪 日本 日本語 ありがとう
です ます から 안녕하세요 세계 데이터 사용자 서울 한국
""")

EMOJI = listed("""
😀 😂 😍 🎉 🚀 🔥 👍 👋🏽 ❤️ ✅ ❌ ⚠️ 📦 📈 🌍 👩‍💻 👨‍👩‍👧 🇫🇷 🇯🇵 ☕ ⭐ → ← ≤ ≥ ≠ × ° € £ ¥ § © ™ …
– — “ ” ‘ ’ • ½
""")

FUNCTIONS = listed("""
count sum avg min max lower upper coalesce length round abs trim substr substring replace cast now
nullif concat rank row_number lag lead date_trunc extract strftime ifnull dense_rank first_value floor
ceil json_extract group_concat string_agg array_agg random left right position to_char date year month
""")

SQL_TYPES = listed("""
INTEGER INT TEXT VARCHAR(255) VARCHAR(50) CHAR(2) BOOLEAN DATE TIMESTAMP NUMERIC(10,2) DECIMAL(10,2)
REAL BIGINT SMALLINT DOUBLE FLOAT SERIAL UUID JSON BLOB TIME
""")


class Writer:
    """Makes up text; everything it does follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def documents(self, number: int) -> Iterator[str]:
        """``number`` texts of the kinds below, by their share of the whole."""
        kinds: list[tuple[int, Callable[[], str]]] = [
            (42, self.sql),
            (22, self.json),
            (18, self.prose),
            (10, self.code),
            (3, self.unicode),
            (5, self.schema),
        ]
        weights = [weight for weight, _ in kinds]
        for _ in range(number):
            yield self.random.choices(kinds, weights)[0][1]()

    # Words and values

    def skewed(self, words: Sequence[str]) -> str:
        """One of ``words``, those early in the list more often."""
        return words[int(len(words) * self.random.random() ** 1.7)]

    def noun(self) -> str:
        noun = self.skewed(NOUNS)
        return plural(noun) if self.random.random() < 0.3 else noun

    def identifier(self) -> str:
        noun, other, roll = self.skewed(NOUNS), self.skewed(NOUNS), self.random.random()
        if roll < 0.30:
            return noun
        if roll < 0.45:
            return f"{noun}_id"
        if roll < 0.75:
            return f"{noun}_{other}"
        if roll < 0.83:
            return f"{self.skewed(ADJECTIVES)}_{noun}"
        if roll < 0.90:
            return f"{self.past()}_at"
        if roll < 0.94:
            return f"is_{self.skewed(ADJECTIVES)}"
        if roll < 0.97:
            return f"{self.random.choice(['max', 'min', 'avg', 'total', 'num', 'n'])}_{plural(noun)}"
        return noun + other.capitalize()

    def past(self) -> str:
        verb = self.skewed(VERBS)
        return verb + ("d" if verb.endswith("e") else "ed")

    def number(self) -> str:
        roll = self.random.random()
        if roll < 0.45:
            return str(self.random.randrange(10))
        if roll < 0.65:
            return str(
                self.random.choice(
                    [10, 12, 15, 18, 20, 25, 30, 40, 50, 60, 65, 75, 80, 90, 99, 100, 120, 150]
                )
            )
        if roll < 0.78:
            return str(
                self.random.choice(
                    [200, 250, 255, 256, 300, 400, 404, 500, 512, 600, 1000, 1024, 5000, 10000]
                )
            )
        if roll < 0.86:
            return str(self.random.randrange(10, 100))
        if roll < 0.90:
            return str(self.random.randrange(100, 100000))
        if roll < 0.97:
            cents = self.random.choice(["5", "0", "25", "50", "75", "99", "01", "1"])
            return f"{self.random.randrange(100)}.{cents}"
        return f"{self.random.randrange(1, 10)}e{self.random.randrange(1, 10)}"

    def date(self) -> str:
        year, month, day = (self.random.randrange(*span) for span in ((1990, 2027), (1, 13), (1, 29)))
        date = f"{year}-{month:02}-{day:02}"
        if self.random.random() < 0.3:
            separator = self.random.choice(" T")
            date += (
                f"{separator}{self.random.randrange(24):02}:{self.random.choice([0, 15, 30, 45, 59]):02}:00"
            )
        return date

    def phrase(self) -> str:
        """The contents of a string value."""
        roll = self.random.random()
        if roll < 0.20:
            return self.random.choice(NAMES)
        if roll < 0.28:
            return f"{self.random.choice(NAMES)} {self.random.choice(NAMES)}"
        if roll < 0.45:
            return self.skewed(ADJECTIVES)
        if roll < 0.58:
            return self.noun()
        if roll < 0.68:
            return self.date()
        if roll < 0.74:
            host = self.random.choice(["example.com", "example.org", "mail.example.net"])
            return f"{self.random.choice(NAMES).lower()}@{host}"
        if roll < 0.78:
            return f"https://www.example.com/{self.noun()}/{self.number()}"
        if roll < 0.84:
            return self.noun().upper()
        if roll < 0.88:
            return f"{self.skewed(NOUNS)[:3].upper()}-{self.random.randrange(1000):03}"
        if roll < 0.92:
            return self.random.choice(ACCENTED + OTHER_SCRIPTS)
        return " ".join(self.words(self.random.randrange(2, 7)))

    def words(self, number: int) -> list[str]:
        kinds: list[Callable[[], str]] = [
            lambda: self.skewed(FUNCTION_WORDS),
            self.noun,
            lambda: self.inflect(self.skewed(VERBS)),
            lambda: self.skewed(ADJECTIVES),
        ]
        return [self.random.choices(kinds, [9, 5, 3, 2])[0]() for _ in range(number)]

    def inflect(self, verb: str) -> str:
        stem = verb[:-1] if verb.endswith("e") else verb
        return self.random.choice([verb, verb, plural(verb), f"{stem}ed", f"{stem}ing", f"{stem}er"])

    # Prose, code, other scripts

    def sentence(self) -> str:
        words = self.words(self.random.randrange(4, 18))
        if self.random.random() < 0.3:
            words.insert(self.random.randrange(1, len(words)), self.random.choice(NAMES))
        if self.random.random() < 0.4:
            words[self.random.randrange(1, len(words) - 1)] += ","
        if self.random.random() < 0.15:
            position = self.random.randrange(1, len(words))
            words[position] = self.random.choice(
                ["don't", "it's", "can't", "we'll", "isn't", "I've", "they're", "won't"]
            )
        if self.random.random() < 0.1:
            words.append(f"({self.number()})")
        end = self.random.choices([".", "?", "!", ":", ";"], [20, 2, 1, 1, 1])[0]
        text = " ".join(words)
        return text[0].upper() + text[1:] + end

    def prose(self) -> str:
        text = " ".join(self.sentence() for _ in range(self.random.randrange(1, 6)))
        if self.random.random() < 0.15:
            text += "\n\n" + "\n".join(f"- {self.sentence()}" for _ in range(3))
        if self.random.random() < 0.1:
            text = f"# {self.noun().title()} {self.noun()}\n\n{text}"
        return text

    def unicode(self) -> str:
        pool = ACCENTED + OTHER_SCRIPTS + EMOJI
        joiner = self.random.choice([" ", " ", "", ", ", "，", "。"])
        return joiner.join(self.random.choice(pool) for _ in range(self.random.randrange(3, 12)))

    def code(self) -> str:
        name, first, second = self.identifier(), self.identifier(), self.identifier()
        verb, noun, value = self.skewed(VERBS), self.skewed(NOUNS), self.number()
        suffix = self.random.choice(["json", "sql", "txt", "py", "csv"])
        return self.random.choice(
            [
                f'def {verb}_{noun}({first}, {second}=None):\n    """{self.sentence()}"""\n'
                f"    if {first} is None:\n        return {value}\n"
                f"    for {noun} in {second}:\n        self.{name}.append({noun}[{value}])\n"
                f"    return [{noun} for {noun} in {first} if {noun}.{name} == {value}]\n",
                f"class {noun.title()}{verb.title()}:\n    def __init__(self, {first}: str) -> None:\n"
                f"        self.{first} = {first}\n        self.{second} = {{}}\n",
                f"function {verb}{noun.title()}({first}, {second}) {{\n  const {name} = {first}.{second};\n"
                f'  if ({name} !== {value}) {{\n    console.log("{self.phrase()}");\n  }}\n'
                f"  return {name};\n}}\n",
                f"for (int i = 0; i < {value}; i++) {{\n\t{name}[i] = {first}(i) + {second}->{noun};\n}}\n",
                f"import {noun}\nfrom {name} import {first}, {second}\n\ntry:\n    {verb}({first})\n"
                "except ValueError as error:\n"
                f'    raise RuntimeError(f"{{error}}: {self.phrase()}") from error\n',
                f"pub fn {verb}_{noun}(&mut self, {first}: &str) -> Option<u32> {{\n"
                f"    let {name} = self.{second}.get({first})?;\n    match {name} {{\n"
                f"        Some(x) => x.{verb}(),\n        None => return Err({value}),\n    }}\n}}\n",
                f'<div class="{noun}"><a href="/{name}/{value}">{self.phrase()}</a></div>\n',
                f'{name}:\n  {first}: {value}\n  {second}: true\n  - {noun}: "{self.phrase()}"\n',
                f"$ {verb} --{noun}={value} -v {name}.{suffix} | sort\n",
            ]
        )

    # JSON

    def json_value(self, depth: int) -> Any:
        roll = self.random.random()
        if depth > 0 and roll < 0.25:
            return {self.identifier(): self.json_value(depth - 1) for _ in range(self.random.randrange(1, 6))}
        if depth > 0 and roll < 0.40:
            return [self.json_value(depth - 1) for _ in range(self.random.randrange(5))]
        if roll < 0.62:
            return self.phrase()
        if roll < 0.82:
            number = float(self.number())
            return int(number) if number.is_integer() else number
        return self.random.choice([True, False, None, "", [], -1, "a\nb", 'say "hi"', "tab\there", "c:\\dir"])

    def json(self) -> str:
        value: Any = {self.identifier(): self.json_value(2) for _ in range(self.random.randrange(1, 7))}
        if self.random.random() < 0.2:
            value = [value, {key: self.json_value(1) for key in value}]
        return self.dumps(value)

    def dumps(self, value: Any) -> str:
        indent = self.random.choice([None, None, None, 2, 4])
        tight = self.random.random() < 0.4 and indent is None
        return json.dumps(
            value,
            indent=indent,
            separators=(",", ":") if tight else None,
            ensure_ascii=self.random.random() < 0.3,
        )

    def schema(self) -> str:
        """A small JSON Schema."""
        properties: dict[str, Any] = {}
        for _ in range(self.random.randrange(1, 6)):
            kind = self.random.choice(["string", "integer", "number", "boolean", "array", "object", "null"])
            entry: dict[str, Any] = {"type": kind}
            if kind == "string":
                entry[self.random.choice(["format", "pattern", "description", "const"])] = self.phrase()
                entry["enum"] = [self.phrase() for _ in range(3)]
                entry["minLength"], entry["maxLength"] = 1, 255
            elif kind in ("integer", "number"):
                entry["minimum"], entry["maximum"] = 0, 100
            elif kind == "array":
                entry["items"] = {"type": "string"}
                entry["minItems"], entry["uniqueItems"] = 1, True
            properties[self.identifier()] = entry
        required = list(properties)[:2]
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.noun(),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        if self.random.random() < 0.3:
            schema["anyOf"] = [{"$ref": f"#/$defs/{self.noun()}"}, {"type": "null"}]
        return self.dumps(schema)

    # SQL: the templates are in upper case; keywords are put in the case of the statement at the end

    def sql(self) -> str:
        statement = self.random.choices(
            [self.query, self.insert, self.update, self.delete, self.create, self.with_query, self.set_query],
            [60, 12, 10, 8, 4, 6, 6],
        )[0]()
        roll = self.random.random()
        if roll < 0.30:
            statement = in_lower_case(statement)
        if self.random.random() < 0.12:
            for word in (
                "FROM",
                "WHERE",
                "GROUP BY",
                "ORDER BY",
                "LEFT JOIN",
                "AND",
                "from",
                "where",
                "order by",
                "and",
            ):
                statement = statement.replace(f" {word} ", f"\n{word} ")
        if self.random.random() < 0.3:
            statement += ";"
        if self.random.random() < 0.03:
            statement = f"-- {self.sentence()}\n{statement}"
        return statement

    def table(self) -> str:
        roll = self.random.random()
        if roll < 0.6:
            return plural(self.skewed(NOUNS))
        if roll < 0.8:
            return self.skewed(NOUNS)
        if roll < 0.9:
            return f"{self.skewed(NOUNS)}_{plural(self.skewed(NOUNS))}"
        return f"{self.random.choice(['public', 'sales', 'app', 'archive'])}.{plural(self.skewed(NOUNS))}"

    def alias(self, table: str, position: int) -> str:
        initial = table.rpartition(".")[2][0]
        return self.random.choice(
            [initial, initial, f"t{position}", f"T{position}", table.rpartition(".")[2]]
        )

    def column(self, aliases: Sequence[str]) -> str:
        name = self.identifier()
        if self.random.random() < 0.03:
            name = self.random.choice([f'"{name}"', f"`{name}`", f"[{name}]"])
        return f"{self.random.choice(aliases)}.{name}" if aliases else name

    def string(self) -> str:
        text = self.phrase()
        if self.random.random() < 0.04:
            text = f"O'{text}"
        return "'" + text.replace("'", "''") + "'"

    def literal(self) -> str:
        roll = self.random.random()
        if roll < 0.46:
            return self.number()
        if roll < 0.92:
            return self.string()
        return self.random.choice(["NULL", "TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE"])

    def expression(self, aliases: Sequence[str], depth: int = 2) -> str:
        roll, column = self.random.random(), self.column(aliases)
        if roll < 0.50 or depth == 0:
            return column
        if roll < 0.60:
            operator = self.random.choice(["+", "-", "*", "/", "||", "%"])
            return f"{self.expression(aliases, depth - 1)} {operator} {self.literal()}"
        if roll < 0.66:
            return f"COUNT({self.random.choice(['*', '*', column, f'DISTINCT {column}'])})"
        if roll < 0.86:
            function = self.skewed(FUNCTIONS)
            function = function if self.random.random() < 0.3 else function.upper()
            arguments = [self.expression(aliases, depth - 1)]
            if self.random.random() < 0.25:
                arguments.append(self.literal())
            return f"{function}({', '.join(arguments)})"
        if roll < 0.90:
            arms = " ".join(
                f"WHEN {self.predicate(aliases, 0)} THEN {self.literal()}"
                for _ in range(self.random.randrange(1, 4))
            )
            return f"CASE {arms} ELSE {self.literal()} END"
        if roll < 0.94:
            return f"CAST({column} AS {self.random.choice(SQL_TYPES)})"
        if roll < 0.97:
            function = self.random.choice(["ROW_NUMBER()", "RANK()", f"SUM({column})", f"LAG({column}, 1)"])
            return (
                f"{function} OVER (PARTITION BY {self.column(aliases)} ORDER BY {self.column(aliases)} DESC)"
            )
        return f"({self.expression(aliases, depth - 1)})"

    def predicate(self, aliases: Sequence[str], depth: int = 2) -> str:
        roll, left = self.random.random(), self.expression(aliases, min(depth, 1))
        if roll < 0.50:
            operator = self.random.choices(["=", ">", "<", ">=", "<=", "<>", "!="], [8, 3, 3, 2, 2, 2, 1])[0]
            gap = "" if self.random.random() < 0.06 else " "
            return f"{left}{gap}{operator}{gap}{self.literal()}"
        if roll < 0.58:
            return f"{left} = {self.column(aliases)}"
        if roll < 0.65:
            return (
                f"{left} LIKE '%{self.noun()}%'"
                if self.random.random() < 0.5
                else f"{left} LIKE '{self.noun()}%'"
            )
        if roll < 0.73:
            return f"{left} IS {self.random.choice(['', 'NOT '])}NULL"
        if roll < 0.80:
            return f"{left} BETWEEN {self.literal()} AND {self.literal()}"
        if roll < 0.87 or depth == 0:
            items = ", ".join(self.literal() for _ in range(self.random.randrange(1, 5)))
            return f"{left} {self.random.choice(['', '', 'NOT '])}IN ({items})"
        if roll < 0.91:
            return f"{left} {self.random.choice(['IN', 'NOT IN', '=', '>'])} ({self.query(depth - 1)})"
        if roll < 0.94:
            return f"{self.random.choice(['', 'NOT '])}EXISTS ({self.query(depth - 1)})"
        if roll < 0.97:
            return f"NOT {self.predicate(aliases, depth - 1)}"
        return f"({self.predicate(aliases, depth - 1)} OR {self.predicate(aliases, depth - 1)})"

    def condition(self, aliases: Sequence[str], depth: int) -> str:
        parts = [self.predicate(aliases, depth)]
        while self.random.random() < 0.35:
            parts += [self.random.choice(["AND", "AND", "AND", "OR"]), self.predicate(aliases, depth)]
        return " ".join(parts)

    def query(self, depth: int = 2) -> str:
        """A SELECT; at depth 0 a short one."""
        tables = [self.table()]
        joined = depth > 0 and self.random.random() < 0.4
        aliases: list[str] = []
        source = tables[0]
        if joined or self.random.random() < 0.1:
            aliases.append(self.alias(tables[0], 1))
            source += f"{self.random.choice([' ', ' AS '])}{aliases[0]}"
        while joined and len(tables) < 4:
            tables.append(self.table())
            aliases.append(self.alias(tables[-1], len(tables)))
            kind = self.random.choice(
                ["JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "CROSS JOIN"]
            )
            source += f" {kind} {tables[-1]}{self.random.choice([' ', ' AS '])}{aliases[-1]}"
            if kind != "CROSS JOIN":
                key = self.identifier()
                on = f"ON {aliases[-2]}.{key} = {aliases[-1]}.{self.random.choice([key, 'id'])}"
                source += f" {on}" if self.random.random() < 0.85 else f" USING ({key})"
            joined = self.random.random() < 0.3

        columns = [
            self.expression(aliases, 2 if depth else 0)
            for _ in range(self.random.randrange(1, 5) if depth else 1)
        ]
        for position in range(len(columns)):
            if depth and self.random.random() < 0.2:
                columns[position] += f" AS {self.identifier()}"
        if self.random.random() < 0.15:
            columns = ["*"] if not aliases or self.random.random() < 0.5 else [f"{aliases[0]}.*"]
        distinct = "DISTINCT " if self.random.random() < 0.1 else ""
        text = f"SELECT {distinct}{', '.join(columns)} FROM {source}"
        if self.random.random() < 0.6:
            text += f" WHERE {self.condition(aliases, max(depth - 1, 0))}"
        if self.random.random() < 0.2:
            text += f" GROUP BY {self.column(aliases)}"
            if self.random.random() < 0.5:
                operator = self.random.choice([">", ">=", "<", "="])
                aggregate = self.random.choice(["COUNT(*)", "SUM(amount)", "AVG(price)"])
                text += f" HAVING {aggregate} {operator} {self.number()}"
        if self.random.random() < 0.3:
            direction = self.random.choice(["", " ASC", " DESC", " DESC NULLS LAST"])
            text += f" ORDER BY {self.expression(aliases, 1)}{direction}"
        if self.random.random() < 0.25:
            text += f" LIMIT {self.number()}" + (
                f" OFFSET {self.number()}" if self.random.random() < 0.2 else ""
            )
        return text

    def set_query(self) -> str:
        operator = self.random.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
        return f"{self.query(1)} {operator} {self.query(1)}"

    def with_query(self) -> str:
        name = self.identifier()
        recursive = self.random.choice(["", "", "RECURSIVE "])
        return (
            f"WITH {recursive}{name} AS ({self.query(1)}) SELECT * FROM {name} WHERE {self.condition([], 1)}"
        )

    def returning(self) -> str:
        return (
            f" RETURNING {self.random.choice(['*', 'id', self.identifier()])}"
            if self.random.random() < 0.15
            else ""
        )

    def insert(self) -> str:
        columns = [self.identifier() for _ in range(self.random.randrange(1, 6))]
        text = f"INSERT INTO {self.table()} ({', '.join(columns)})"
        if self.random.random() < 0.15:
            return f"{text} {self.query(1)}"
        rows = [
            f"({', '.join(self.literal() for _ in columns)})"
            for _ in range(self.random.choice([1, 1, 1, 2, 3]))
        ]
        text += f" VALUES {', '.join(rows)}"
        if self.random.random() < 0.15:
            action = self.random.choice(["NOTHING", f"UPDATE SET {columns[0]} = EXCLUDED.{columns[0]}"])
            text += f" ON CONFLICT ({columns[0]}) DO {action}"
        return text + self.returning()

    def update(self) -> str:
        settings = [f"{self.identifier()} = {self.literal()}"]
        if self.random.random() < 0.5:
            column = self.identifier()
            settings.append(f"{column} = {column} {self.random.choice('+-*')} {self.number()}")
        return (
            f"UPDATE {self.table()} SET {', '.join(settings)} WHERE {self.condition([], 1)}{self.returning()}"
        )

    def delete(self) -> str:
        return f"DELETE FROM {self.table()} WHERE {self.condition([], 1)}{self.returning()}"

    def create(self) -> str:
        name = self.table()
        if self.random.random() < 0.2:
            return f"CREATE INDEX idx_{self.identifier()} ON {name} ({self.identifier()})"
        extras = [
            "",
            "",
            " NOT NULL",
            " UNIQUE",
            " DEFAULT NULL",
            " DEFAULT 0",
            f" REFERENCES {self.table()}(id)",
        ]
        columns = ["id INTEGER PRIMARY KEY"] + [
            f"{self.identifier()} {self.random.choice(SQL_TYPES)}{self.random.choice(extras)}"
            for _ in range(self.random.randrange(1, 6))
        ]
        return f"CREATE TABLE {self.random.choice(['', 'IF NOT EXISTS '])}{name} ({', '.join(columns)})"


def plural(noun: str) -> str:
    """The regular plural of a noun, which is also the third person of a verb."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def in_lower_case(statement: str) -> str:
    """The statement in lower case, string literals excepted."""
    parts = statement.split("'")
    return "'".join(part if position % 2 else part.lower() for position, part in enumerate(parts))


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(Writer(SEED).documents(DOCUMENTS), trainer)
    return tokenizer


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the bundled vocabulary.")
    parser.add_argument("output", type=Path, nargs="?", default=OUTPUT)
    parser.add_argument("--check", action="store_true", help="compare with the file on disk, write nothing")
    arguments = parser.parse_args()
    text = json.dumps(json.loads(train().to_str()), ensure_ascii=False, separators=(",", ":")) + "\n"
    if arguments.check:
        same: bool = arguments.output.read_text(encoding="utf-8") == text
        print(f"{arguments.output}: {'up to date' if same else 'differs from what this script writes'}")
        return 0 if same else 1
    arguments.output.write_text(text, encoding="utf-8")
    print(f"{arguments.output}: {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

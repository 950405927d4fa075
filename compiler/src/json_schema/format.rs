//! `format`: the languages of the named formats, each exactly what its RFC's grammar says.
//!
//! They are written as patterns. Where a grammar leaves something to prose or to the world:
//!
//! - `date`, `time`, `date-time` (RFC 3339): the day exists in its month and year; seconds end at 59, since which leap
//!   seconds there have been, or will be, is no matter of syntax; an offset is mandatory.
//! - `email` (RFC 5321, `Mailbox`): ASCII, no limits of length, as the RFC recommends; of address literals the IPv4 and
//!   IPv6 ones, since no other kind is registered.
//! - `hostname` (RFC 1123): letters, digits and hyphens, labels up to 63 and names up to 253, no dot at the end.
//! - `uri`, `uri-reference` (RFC 3986), `iri`, `iri-reference` (RFC 3987), `ipv6` (RFC 4291, no zone), `uuid` (RFC 9562),
//!   `json-pointer` (RFC 6901), `duration` (RFC 3339, appendix A): the grammar, whole.
//!
//! Others are annotations: among them `regex`, which is not regular, and the internationalised names.

use super::{pattern, string};
use crate::grammar::ir::{Expr, GraphState, Terminal};
use crate::lexer::{LexerDfa, LexerLimits};
use std::sync::{Arc, OnceLock};

/// A format's strings: decoded, and as JSON spells them.
struct Language {
    decoded: Expr,
    spelled: Arc<Expr>,
}

/// The formats, and the languages of those that some schema has asked for: the largest take milliseconds to build.
static FORMATS: [(&str, OnceLock<Option<Language>>); 14] = [
    ("date", OnceLock::new()),
    ("time", OnceLock::new()),
    ("date-time", OnceLock::new()),
    ("duration", OnceLock::new()),
    ("email", OnceLock::new()),
    ("hostname", OnceLock::new()),
    ("ipv4", OnceLock::new()),
    ("ipv6", OnceLock::new()),
    ("uri", OnceLock::new()),
    ("uri-reference", OnceLock::new()),
    ("iri", OnceLock::new()),
    ("iri-reference", OnceLock::new()),
    ("uuid", OnceLock::new()),
    ("json-pointer", OnceLock::new()),
];

/// Whether `name` is one of the formats above.
pub fn is_known(name: &str) -> bool {
    FORMATS.iter().any(|format| format.0 == name)
}

/// The decoded strings of the format `name`; none if it is not one of those above.
pub fn format(name: &str) -> Option<&'static Expr> {
    language(name).map(|language| &language.decoded)
}

/// The JSON texts of the format `name`.
pub fn spelled(name: &str) -> Option<Arc<Expr>> {
    language(name).map(|language| Arc::clone(&language.spelled))
}

fn language(name: &str) -> Option<&'static Language> {
    let (name, language) = FORMATS.iter().find(|format| format.0 == name)?;
    let build = || {
        let decoded = build(name)?;
        // Were one not, it would be taken for an unknown format, which any string has.
        let spelled = string::spell(&decoded, string::Spelling::Any).expect("formats are sets of text");
        Some(Language { decoded, spelled: Arc::new(spelled) })
    };
    language.get_or_init(build).as_ref()
}

fn build(name: &str) -> Option<Expr> {
    let text = match name {
        "date" => date(),
        "time" => time(),
        "date-time" => format!("{}[Tt]{}", date(), time()),
        "duration" => duration(),
        "email" => email(),
        "hostname" => hostname(),
        "ipv4" => ipv4(OCTET),
        "ipv6" => ipv6(&ipv4(OCTET), 7),
        "uri" => Uri::ascii().absolute(),
        "uri-reference" => Uri::ascii().reference(),
        "iri" => Uri::international().absolute(),
        "iri-reference" => Uri::international().reference(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_owned(),
        "json-pointer" => "(?:/(?:[^~/]|~[01])*)*".to_owned(),
        _ => return None,
    };
    let language = pattern::ecma(&format!("^(?:{text})$")).ok()?;
    let language = minimal(&language).unwrap_or(language);
    let longest = (name == "hostname").then_some(253);
    string::with_length(Some(language), 0, longest).ok()
}

/// The same language as its smallest automaton, from which a lexer is built several times faster; none if not all of it is
/// ASCII.
fn minimal(language: &Expr) -> Option<Expr> {
    // A byte in front, since a terminal is never empty; it leads from state 0 to state 1.
    let terminal = Terminal::plain("", Expr::Cat(vec![Expr::Bytes(b"^".to_vec()), language.clone()]));
    let dfa = LexerDfa::build(&[terminal], &[0], false, &LexerLimits::default()).ok()?;
    let states = 1..dfa.state_count() as u32;
    if states.clone().any(|q| (0x80..=0xFF).any(|byte| dfa.step(q, byte).is_some())) {
        return None;
    }
    let state = |q: u32| {
        let mut edges: Vec<(Vec<(u32, u32)>, u32)> = Vec::new();
        for (code, to) in (0..=0x7F).filter_map(|byte| Some((u32::from(byte), dfa.step(q, byte)? - 1))) {
            match edges.iter_mut().find(|(_, target)| *target == to) {
                Some((ranges, _)) => ranges.push((code, code)),
                None => edges.push((vec![(code, code)], to)),
            }
        }
        let edges = edges.into_iter().map(|(ranges, to)| (Expr::Class(ranges), to)).collect();
        GraphState { accepting: dfa.is_accepting(q), edges }
    };
    Some(Expr::Graph(states.map(state).collect()))
}

fn date() -> String {
    let day =
        r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))";
    let leap_year = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!(r"(?:\d{{4}}-{day}|{leap_year}-02-29)")
}

fn time() -> String {
    let hour_minute = r"(?:[01]\d|2[0-3]):[0-5]\d";
    format!(r"{hour_minute}:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]{hour_minute})")
}

fn duration() -> String {
    let (minute, day) = (r"\d+M(?:\d+S)?", r"\d+D");
    let time = format!(r"T(?:\d+H(?:{minute})?|{minute}|\d+S)");
    let month = format!(r"\d+M(?:{day})?");
    format!(r"P(?:(?:{day}|{month}|\d+Y(?:{month})?)(?:{time})?|{time}|\d+W)")
}

/// 0 to 255 without leading zeros.
const OCTET: &str = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";

fn ipv4(octet: &str) -> String {
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// IPv6 addresses in which `::` stands beside at most `most` groups; `ipv4` counts for the last two of them.
fn ipv6(ipv4: &str, most: usize) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let mut forms = vec![format!("(?:{group}:){{7}}{group}"), format!("(?:{group}:){{6}}{ipv4}")];
    for left in 0..=most {
        let before = if left > 0 { format!("{group}(?::{group}){{{}}}", left - 1) } else { String::new() };
        let right = most - left;
        let mut after = vec![String::new()];
        if right >= 1 {
            after.push(format!("(?:{group}:){{0,{}}}{group}", right - 1));
        }
        if right >= 2 {
            after.push(format!("(?:{group}:){{0,{}}}{ipv4}", right - 2));
        }
        forms.push(format!("{before}::(?:{})", after.join("|")));
    }
    format!("(?:{})", forms.join("|"))
}

fn email() -> String {
    let atom = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~]+";
    let quoted = r#""(?:[ !#-\[\]-~]|\\[ -~])*""#;
    let label = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
    let ipv4 = ipv4(r"(?:25[0-5]|2[0-4]\d|[01]\d\d|\d\d?)");
    let ipv6 = ipv6(&ipv4, 6);
    format!(r"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|\[(?:{ipv4}|[Ii][Pp][Vv]6:{ipv6})\])")
}

fn hostname() -> String {
    let label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
    format!(r"{label}(?:\.{label})*")
}

/// The rules of RFC 3986, or of RFC 3987.
struct Uri {
    /// Inside of a class: unreserved characters.
    unreserved: String,
    /// Inside of a class: private ones, allowed in queries.
    private: &'static str,
}

impl Uri {
    fn ascii() -> Self {
        Self { unreserved: r"A-Za-z0-9\-._~".to_owned(), private: "" }
    }

    fn international() -> Self {
        let mut unreserved = r"A-Za-z0-9\-._~\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}".to_owned();
        for plane in 1..=0xE {
            let first = if plane == 0xE { 0x1000 } else { 0 };
            unreserved += &format!(r"\u{{{:X}}}-\u{{{:X}}}", (plane << 16) + first, (plane << 16) + 0xFFFD);
        }
        Self { unreserved, private: r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}" }
    }

    /// One character out of the unreserved ones, the `sub-delims`, `more`, or percent-encoded.
    fn char(&self, more: &str) -> String {
        format!(r"(?:[{}!$&'()*+,;={more}]|%[0-9A-Fa-f]{{2}})", self.unreserved)
    }

    fn authority(&self) -> String {
        let future = format!(r"[Vv][0-9A-Fa-f]+\.[{}!$&'()*+,;=:]+", Self::ascii().unreserved);
        let literal = format!(r"\[(?:{}|{future})\]", ipv6(&ipv4(OCTET), 7));
        // An IPv4 address is a registered name as well.
        format!(r"(?:{}*@)?(?:{literal}|{}*)(?::\d*)?", self.char(":"), self.char(""))
    }

    /// What comes after the scheme's colon, or without one; `first` is a character of a path's first segment then.
    fn hierarchy(&self, first: &str) -> String {
        let segments = format!("(?:/{}*)*", self.char(":@"));
        let absolute = format!("/(?:{}+{segments})?", self.char(":@"));
        format!("(?://{}{segments}|{absolute}|{first}+{segments}|)", self.authority())
    }

    fn tail(&self) -> String {
        let (query, fragment) = (self.char(&format!(":@/?{}", self.private)), self.char(":@/?"));
        format!(r"(?:\?{query}*)?(?:#{fragment}*)?")
    }

    fn absolute(&self) -> String {
        format!(r"[A-Za-z][A-Za-z0-9+\-.]*:{}{}", self.hierarchy(&self.char(":@")), self.tail())
    }

    fn reference(&self) -> String {
        format!("{}|{}{}", self.absolute(), self.hierarchy(&self.char("@")), self.tail())
    }
}

#[cfg(test)]
mod tests {
    use super::super::string::testing::Language;
    use super::*;

    #[test]
    fn every_known_format_has_a_language() {
        assert_eq!(FORMATS.iter().find(|(name, _)| spelled(name).is_none()).map(|format| format.0), None);
        assert!(!is_known("color") && spelled("color").is_none());
    }

    #[track_caller]
    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let language =
            Language::of(&string::spell(format(name).expect("a known format"), string::Spelling::Any).expect("text"));
        let has = |text: &&&str| language.has(&serde_json::to_string(text).expect("a string"));
        assert_eq!(good.iter().find(|text| !has(text)), None, "is a {name}");
        assert_eq!(bad.iter().find(has), None, "is no {name}");
    }

    #[test]
    fn dates_exist() {
        let good = ["2024-02-29", "2000-02-29", "2023-02-28", "2024-12-31", "0000-02-29", "9999-04-30"];
        let bad = [
            "2023-02-29",
            "1900-02-29",
            "2024-02-30",
            "2024-04-31",
            "2024-13-01",
            "2024-00-10",
            "2024-01-00",
            "2024-1-01",
        ];
        check("date", &good, &bad);
        check("date", &[], &["", "20240229", "2024-W09-4", "2024-060", "+2024-02-29", "2024-02-29\n", "२०२४-०२-२९"]);
        for year in 0..2400 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let date = &format!("{year:04}-02-29")[..];
            if leap { check("date", &[date], &[]) } else { check("date", &[], &[date]) }
        }
    }

    #[test]
    fn times_have_an_offset() {
        check(
            "time",
            &["12:34:56Z", "23:59:59.123456789+05:30", "00:00:00-23:59", "12:00:00z"],
            &["12:34:56", "24:00:00Z"],
        );
        check(
            "time",
            &[],
            &["12:60:00Z", "12:00:60Z", "12:00:00.Z", "12:00:00+24:00", "12:00:00+00:60", "1:00:00Z", "12:00Z", ""],
        );
        check("date-time", &["2024-02-29T12:34:56Z", "2023-01-01t00:00:00.5-08:00"], &["2023-02-29T12:34:56Z"]);
        check(
            "date-time",
            &[],
            &["2024-02-29 12:34:56Z", "2024-02-29T12:34:56", "2024-02-29", "2024-02-29T25:00:00Z", ""],
        );
    }

    #[test]
    fn durations_skip_no_unit() {
        check(
            "duration",
            &["P1Y2M3DT4H5M6S", "P1Y", "P1M2D", "PT1H", "PT1H2M", "PT5S", "P2W", "P1DT12H", "P1YT1M"],
            &["P", "PT"],
        );
        check(
            "duration",
            &[],
            &["", "1D", "P1", "P1DT", "P1Y2D", "PT1H2S", "P1W2D", "P1S", "P1.5D", "-P1D", "P2D1Y", "p1d"],
        );
    }

    #[test]
    fn mail_addresses_are_mailboxes() {
        let good = [
            "joe@example.com",
            "a.b+c@x-y.org",
            "\"a b\\\"@\"@ex",
            "!#$%&'*+-/=?^_`{|}~@a.b",
            "j@[127.0.0.1]",
            "j@[IPv6:::1]",
        ];
        let bad = [
            "joe", "@a.b", "joe@", ".a@b.c", "a.@b.c", "a..b@c.d", "a b@c.d", "a@b_c.d", "a@-b.c", "a@b-.c", "a@b..c",
            "a@b.",
        ];
        check("email", &good, &bad);
        check(
            "email",
            &["j@[IPv6:1::2:127.0.0.1]"],
            &["j@[127.0.0.300]", "j@[127.0.0]", "j@[::1]", "\"a\"b@c.d", "\"\n\"@c", "é@b.c", ""],
        );
    }

    #[test]
    fn host_names_have_short_labels() {
        let (label, long) = ("a".repeat(63), "a".repeat(64));
        let name = format!("{label}.{label}.{label}.{}", "b".repeat(61));
        check(
            "hostname",
            &["a", "example.com", "1-2.3", "xn--bcher-kva.example", &label, &name],
            &[&long, &format!("{name}b")],
        );
        check("hostname", &[], &["", ".", "a.", ".a", "a..b", "-a", "a-", "a.-b", "a_b", "a b", "é", "a.b\n"]);
    }

    #[test]
    fn ip_addresses() {
        check(
            "ipv4",
            &["0.0.0.0", "255.255.255.255", "10.20.30.40"],
            &["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.", ""],
        );
        let good = [
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "fe80::aBcD",
            "::ffff:1.2.3.4",
        ];
        let bad = [
            "",
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "::g",
            "::1%eth0",
            "1:2:3:4:5:6:7:8::",
        ];
        check("ipv6", &good, &bad);
        check(
            "ipv6",
            &["1:2:3:4:5:6:1.2.3.4", "1::5:1.2.3.4"],
            &["1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.256", "1.2.3.4::", "::01.2.3.4"],
        );
    }

    #[test]
    fn resource_identifiers() {
        let good = [
            "http://a.b/c?d=e#f",
            "mailto:x@y",
            "urn:isbn:123",
            "http://[::1]:80/",
            "file:///etc",
            "a:",
            "http://u:p@h:1/%41",
        ];
        let bad = [
            "",
            "/a",
            "//h/p",
            "a b:",
            "1a:b",
            "http://a b",
            "http://[::1",
            "a:%4",
            "a:\\b",
            "a:<b>",
            "a:é",
            "http://a:b/",
            "a#b",
            ":a",
        ];
        check("uri", &good, &bad);
        check(
            "uri",
            &["ftp://1.2.3.4/x", "a:/b", "a://[v1.x:y]"],
            &["http://[::1]x/", "a:b##c", "a:b c", "a:{b}", "a:\"b\"", "a:b\n"],
        );
        check("uri-reference", &good, &["1a:b", "http://a b", "a:%4", "\\", "é", "a b", ":a", "#a#"]);
        check("uri-reference", &["", "/a/b", "../x", "#f", "?q", "a/b:c", "//h/p", "./a:b"], &[]);
        check(
            "iri",
            &["http://é.b/ü?\u{E000}", "urn:ü"],
            &["", "/é", "http://a b", "a:\u{E000}", "a:\u{FFFF}", "a:\u{EFFFE}", "é:a"],
        );
        check("iri-reference", &["", "/é", "#é", "é"], &["a b", "\u{E000}", ":é"]);
    }

    #[test]
    fn identifiers_and_pointers() {
        let good = [
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
            "00000000-0000-0000-0000-000000000000",
        ];
        let bad = [
            "",
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638g",
        ];
        check("uuid", &good, &bad);
        check("uuid", &[], &["{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", "2eb8aa0-8aa98-11ea-b4aa-73b441d16380"]);
        check("json-pointer", &["", "/", "/a/b", "/a~0b/~1", "//", "/é\n"], &["a", "#/a", "/~", "/~2", "/a~"]);
        assert_eq!(format("regex"), None);
        assert_eq!(format("int32"), None);
    }
}

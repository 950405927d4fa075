//! Languages of JSON numbers.
//!
//! Without bounds a number has every spelling of RFC 8259. Bounds and `multipleOf` need exact arithmetic on what is
//! spelled, and `10e-1` against `1e0` is beyond regular languages; there, numbers are *plain decimals*: digits, perhaps a
//! point and more digits, trailing zeros as many as one likes, no exponent. `-0` equals 0.
//!
//! A plain decimal is read from the left by an automaton that knows where it stands against the lower and the upper
//! bound, digit by digit, and the remainder by the divisor. So bounds may have hundreds of digits, and no floating point
//! is involved. Remainders that no continuation tells apart are one: a divisor of a million takes eight states.

use std::cmp::Ordering;
use std::fmt;

use rustc_hash::FxHashMap;

use super::Reason;
use crate::grammar::ir::{Expr, GraphState};

/// Digits before or after the point beyond which a number in a schema is refused; binary64 has at most 1,074.
const MAX_DIGITS: i64 = 1100;
/// States of an automaton for bounds and divisors.
const MAX_STATES: usize = 20_000;

/// An exact decimal number, of one form for each value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// Without zeros at either end; of 0 there are none. The value is 0.d₁d₂d₃… · 10^`point`.
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// The exact value of a JSON number.
    ///
    /// # Errors
    /// If it has more than 1,100 digits before or after the point.
    pub fn from_number(number: &serde_json::Number) -> Result<Self, Reason> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> =
            integer.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        let leading = all.iter().take_while(|&&d| d == 0).count();
        let trailing = all[leading..].iter().rev().take_while(|&&d| d == 0).count();
        let digits = all[leading..all.len() - trailing].to_vec();
        if digits.is_empty() {
            return Ok(Self::zero());
        }
        let before = integer.bytes().filter(u8::is_ascii_digit).count() as i64 - leading as i64;
        let point = exponent.parse::<i64>().ok().and_then(|exponent| before.checked_add(exponent));
        match point {
            Some(point) if point <= MAX_DIGITS && digits.len() as i64 - point <= MAX_DIGITS => {
                Ok(Self { negative: text.starts_with('-'), digits, point })
            }
            _ => Err(Reason(format!("the number {text} has more than {MAX_DIGITS} digits before or after the point"))),
        }
    }

    /// A whole number.
    pub fn from_i64(number: i64) -> Self {
        Self::from_number(&number.into()).expect("19 digits are few")
    }

    fn zero() -> Self {
        Self { negative: false, digits: Vec::new(), point: 0 }
    }

    /// Is it a whole number?
    pub fn is_integer(&self) -> bool {
        self.fraction_len() == 0
    }

    /// Is it a whole multiple of `divisor`? Of 0 only 0 is.
    pub fn is_multiple_of(&self, divisor: &Self) -> bool {
        if divisor.digits.is_empty() {
            return self.digits.is_empty();
        }
        let scale = self.fraction_len().max(divisor.fraction_len());
        let digits =
            |number: &Self| -> Vec<u8> { (-scale..number.point).rev().map(|place| number.digit(place)).collect() };
        let divisor = digits(divisor);
        // Long division by hand: `rest` has no leading zeros.
        let mut rest: Vec<u8> = Vec::new();
        for digit in digits(self) {
            if digit != 0 || !rest.is_empty() {
                rest.push(digit);
            }
            while rest.len() > divisor.len() || (rest.len() == divisor.len() && rest >= divisor) {
                subtract(&mut rest, &divisor);
            }
        }
        rest.is_empty()
    }

    /// The digit that counts 10^`place`.
    fn digit(&self, place: i64) -> u8 {
        usize::try_from(self.point - 1 - place).ok().and_then(|i| self.digits.get(i)).copied().unwrap_or(0)
    }

    /// Digits before the point, at least one.
    fn integer_len(&self) -> i64 {
        self.point.max(1)
    }

    /// Digits after the point.
    fn fraction_len(&self) -> i64 {
        (self.digits.len() as i64 - self.point).max(0)
    }

    /// The value times 10^`scale`, if it is a whole number below 10^37.
    fn scaled(&self, scale: i64) -> Option<u128> {
        if self.point + scale > 37 {
            return None;
        }
        Some((-scale..self.point).rev().fold(0, |sum, place| sum * 10 + u128::from(self.digit(place))))
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let key = |number: &Self| (!number.digits.is_empty(), number.point);
        key(self).cmp(&key(other)).then_with(|| self.digits.cmp(&other.digits))
    }
}

/// `number` − `less`, both digits without leading zeros, `number` not the smaller one.
fn subtract(number: &mut Vec<u8>, less: &[u8]) {
    let mut borrow = 0;
    for i in 0..number.len() {
        let at = number.len() - 1 - i;
        let take = borrow + if i < less.len() { less[less.len() - 1 - i] } else { 0 };
        borrow = u8::from(number[at] < take);
        number[at] = number[at] + 10 * borrow - take;
    }
    let zeros = number.iter().take_while(|&&d| d == 0).count();
    number.drain(..zeros);
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (negative, _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |places: std::ops::Range<i64>| {
            places.rev().map(|place| char::from(b'0' + self.digit(place))).collect::<String>()
        };
        write!(f, "{}{}", if self.negative { "-" } else { "" }, digits(0..self.integer_len()))?;
        if self.fraction_len() > 0 { write!(f, ".{}", digits(-self.fraction_len()..0)) } else { Ok(()) }
    }
}

/// What a number has to satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NumberBounds {
    /// Lower bound, and whether it is itself excluded.
    pub min: Option<(Decimal, bool)>,
    /// Upper bound, and whether it is itself excluded.
    pub max: Option<(Decimal, bool)>,
    /// Divisors, all of them.
    pub multiple_of: Vec<Decimal>,
    /// A whole number, `1.0` included.
    pub integer: bool,
    /// Spelled without a point, as draft 4 wants of integers.
    pub pointless: bool,
}

fn bytes(text: &str) -> Expr {
    Expr::Bytes(text.as_bytes().to_vec())
}

fn digits(min: u32) -> Expr {
    Expr::Repeat(Box::new(Expr::ByteClass(vec![(b'0', b'9')])), min, None)
}

fn zeros(min: u32) -> Expr {
    Expr::Repeat(Box::new(bytes("0")), min, None)
}

fn optional(expr: Expr) -> Expr {
    Expr::Repeat(Box::new(expr), 0, Some(1))
}

fn signed_integer() -> Expr {
    let positive = Expr::Cat(vec![Expr::ByteClass(vec![(b'1', b'9')]), digits(0)]);
    Expr::Cat(vec![optional(bytes("-")), Expr::Alt(vec![bytes("0"), positive])])
}

fn exponent_mark() -> Expr {
    Expr::ByteClass(vec![(b'E', b'E'), (b'e', b'e')])
}

fn any_exponent() -> Expr {
    let sign = optional(Expr::ByteClass(vec![(b'+', b'+'), (b'-', b'-')]));
    Expr::Cat(vec![exponent_mark(), sign, digits(1)])
}

/// Every JSON number, in every spelling.
pub fn any_number() -> Expr {
    Expr::Cat(vec![plain(), optional(any_exponent())])
}

/// Every plain decimal.
pub fn plain() -> Expr {
    Expr::Cat(vec![signed_integer(), optional(Expr::Cat(vec![bytes("."), digits(1)]))])
}

/// Every plain decimal whose value is whole: `1`, and `1.0` too.
pub fn any_integer() -> Expr {
    Expr::Cat(vec![signed_integer(), optional(Expr::Cat(vec![bytes("."), zeros(1)]))])
}

/// The numbers within `bounds`: plain decimals, but every spelling if nothing is asked for; none if there is no such number.
///
/// # Errors
/// If a divisor is not positive, or the automaton grows too large for it.
pub fn bounded(bounds: &NumberBounds) -> Result<Option<Expr>, Reason> {
    let NumberBounds { min, max, multiple_of, integer, pointless } = bounds;
    if min.is_none() && max.is_none() && multiple_of.is_empty() {
        return Ok(Some(match (integer, pointless) {
            (_, true) => signed_integer(),
            (true, false) => any_integer(),
            (false, false) => any_number(),
        }));
    }
    let divisor = Divisor::new(multiple_of, *integer)?;
    let mut graph = vec![GraphState::default()];
    let sides = [(false, min, max), (true, max, min)];
    for (negative, low, high) in sides {
        let Some((low, high)) = magnitudes(negative, low.as_ref(), high.as_ref()) else { continue };
        let reader = Reader { low, high, divisor: divisor.as_ref(), pointless: *pointless };
        reader.explore(negative, &mut graph)?;
    }
    let is_empty = !graph.iter().any(|state| state.accepting);
    Ok((!is_empty).then_some(Expr::Graph(graph)))
}

/// Every plain decimal spelling of `number`, and the scientific ones with one digit before the point.
///
/// # Errors
/// If it has too many digits.
pub fn literal(number: &serde_json::Number) -> Result<Expr, Reason> {
    Decimal::from_number(number).map(|value| literal_of(&value))
}

/// A whole number without point and exponent.
pub fn integer_literal(value: &Decimal) -> Expr {
    let zero = value.digits.is_empty();
    let text = bytes(&value.to_string());
    if zero { Expr::Cat(vec![optional(bytes("-")), text]) } else { text }
}

/// [`literal`] of a decimal.
pub fn literal_of(value: &Decimal) -> Expr {
    if value.digits.is_empty() {
        let zero = Expr::Cat(vec![optional(bytes("-")), bytes("0"), optional(Expr::Cat(vec![bytes("."), zeros(1)]))]);
        return Expr::Cat(vec![zero, optional(any_exponent())]);
    }
    let sign = bytes(if value.negative { "-" } else { "" });
    let text = Decimal { negative: false, ..value.clone() }.to_string();
    let tail = |fraction: &str| {
        if fraction.is_empty() {
            optional(Expr::Cat(vec![bytes("."), zeros(1)]))
        } else {
            Expr::Cat(vec![bytes("."), bytes(fraction), zeros(0)])
        }
    };
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let plain = Expr::Cat(vec![bytes(integer), tail(fraction)]);

    let digits: String = value.digits.iter().map(|&d| char::from(b'0' + d)).collect();
    let exponent = value.point - 1;
    let sign_of_exponent = match exponent {
        0 => optional(Expr::ByteClass(vec![(b'+', b'+'), (b'-', b'-')])),
        1.. => optional(bytes("+")),
        _ => bytes("-"),
    };
    let exponent = [exponent_mark(), sign_of_exponent, zeros(0), bytes(&exponent.abs().to_string())];
    let scientific = [bytes(&digits[..1]), tail(&digits[1..])].into_iter().chain(exponent);
    Expr::Cat(vec![sign, Expr::Alt(vec![plain, Expr::Cat(scientific.collect())])])
}

/// A magnitude and whether it is itself excluded.
type Magnitude = Option<(Decimal, bool)>;

/// The bounds of x ≥ 0 for x (or, on the negative side, −x) from `low` to `high`, where the negative side gets its bounds
/// exchanged; none if there is no such x.
fn magnitudes(
    negative: bool,
    low: Option<&(Decimal, bool)>,
    high: Option<&(Decimal, bool)>,
) -> Option<(Magnitude, Magnitude)> {
    // On the side of the sign a bound is its own magnitude; a bound on the other side holds for all x, or for none.
    let beyond = |bound: &(Decimal, bool)| !bound.0.digits.is_empty() && bound.0.negative != negative;
    let magnitude = |bound: &(Decimal, bool)| (Decimal { negative: false, ..bound.0.clone() }, bound.1);
    if high.is_some_and(beyond) {
        return None;
    }
    Some((low.filter(|bound| !beyond(bound)).map(magnitude), high.map(magnitude)))
}

/// All divisors as one: `modulus` · 10^−`scale`.
struct Divisor {
    modulus: u128,
    scale: u32,
}

impl Divisor {
    fn new(multiple_of: &[Decimal], integer: bool) -> Result<Option<Self>, Reason> {
        if let Some(divisor) = multiple_of.iter().find(|d| d.negative || d.digits.is_empty()) {
            return Err(Reason(format!("multipleOf must be greater than 0, it is {divisor}")));
        }
        let one = Decimal { negative: false, digits: vec![1], point: 1 };
        let all: Vec<&Decimal> = multiple_of.iter().chain(integer.then_some(&one)).collect();
        let Some(scale) = all.iter().map(|d| d.fraction_len()).max() else { return Ok(None) };
        let lcm = |a: u128, b: u128| (a / gcd(a, b)).checked_mul(b).filter(|&lcm| lcm < 10u128.pow(37));
        let modulus = all.iter().try_fold(1, |product, d| lcm(product, d.scaled(scale)?));
        match modulus {
            Some(modulus) => Ok(Some(Self { modulus, scale: scale as u32 })),
            None => Err(Reason("multipleOf has too many digits to compute remainders; the limit is 37".to_owned())),
        }
    }

    /// `residue` · 10^`places` in the modulus.
    fn shift(&self, residue: u128, places: u32) -> u128 {
        (0..places).fold(residue, |residue, _| residue * 10 % self.modulus)
    }

    /// What tells residues apart: for so many digits as may still come, the least ones that make a multiple, if any do.
    fn completions(&self, residue: u128, phase: Phase, fraction: u32) -> Vec<Option<u128>> {
        let left = self.scale.saturating_sub(fraction);
        let enough = match phase {
            Phase::Point | Phase::Fraction => 0,
            // With more digits than the modulus has, anything can be completed.
            _ => (0..).find(|&n| 10u128.pow(n) >= self.modulus).unwrap_or(0),
        };
        let mut shifted = self.shift(residue, left);
        let mut all = Vec::with_capacity(1);
        for places in left..=left.max(enough) {
            let missing = (self.modulus - shifted) % self.modulus;
            all.push(10u128.checked_pow(places).is_none_or(|limit| missing < limit).then_some(missing));
            shifted = self.shift(shifted, 1);
        }
        all
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Which part of a plain decimal has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Start,
    /// A leading zero, which nothing but a point may follow.
    Zero,
    Integer,
    Point,
    Fraction,
}

/// What has been read of a plain decimal, as far as it matters.
#[derive(Debug, Clone, Copy)]
struct Progress {
    phase: Phase,
    /// Against the lower and the upper bound.
    against: [Standing; 2],
    /// Digits after the point, at most the divisor's scale.
    fraction: u32,
    residue: u128,
}

/// A number against a bound: its digits in this part, as far as they matter, and how those read compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Standing {
    read: i64,
    order: Ordering,
}

/// Reads the plain decimals x ≥ 0 between two magnitudes.
struct Reader<'a> {
    low: Magnitude,
    high: Magnitude,
    divisor: Option<&'a Divisor>,
    pointless: bool,
}

impl Reader<'_> {
    /// Add the automaton to `graph`, whose state 0 starts.
    fn explore(&self, negative: bool, graph: &mut Vec<GraphState>) -> Result<(), Reason> {
        let against = [Standing { read: 0, order: Ordering::Equal }; 2];
        let mut states = vec![Progress { phase: Phase::Start, against, fraction: 0, residue: 0 }];
        let mut ids = FxHashMap::default();
        let base = graph.len() as u32;
        let mut done = 0;
        while let Some(&progress) = states.get(done) {
            done += 1;
            let mut edges: Vec<(Vec<(u8, u8)>, u32)> = Vec::new();
            for byte in b"0123456789." {
                let Some(next) = self.step(progress, *byte) else { continue };
                let key = (next.phase, next.against, next.fraction, self.completions(next));
                let to = *ids.entry(key).or_insert_with(|| {
                    states.push(next);
                    states.len() as u32 - 1
                });
                match edges.iter_mut().find(|(_, target)| *target == to) {
                    Some((ranges, _)) => match ranges.last_mut() {
                        Some(last) if last.1 + 1 == *byte => last.1 = *byte,
                        _ => ranges.push((*byte, *byte)),
                    },
                    None => edges.push((vec![(*byte, *byte)], to)),
                }
            }
            if states.len() > MAX_STATES {
                return Err(Reason(format!(
                    "bounds and multipleOf together take more than {MAX_STATES} states; use a divisor with fewer digits"
                )));
            }
            let edges = edges.into_iter().map(|(ranges, to)| (Expr::ByteClass(ranges), base + to)).collect();
            graph.push(GraphState { accepting: self.accepts(progress), edges });
        }
        let start = if negative { vec![(bytes("-"), base)] } else { graph[base as usize].edges.clone() };
        graph[0].edges.extend(start);
        Ok(())
    }

    fn completions(&self, progress: Progress) -> Vec<Option<u128>> {
        self.divisor.map_or_else(Vec::new, |d| d.completions(progress.residue, progress.phase, progress.fraction))
    }

    fn bounds(&self) -> [Option<&Decimal>; 2] {
        [&self.low, &self.high].map(|bound| bound.as_ref().map(|(value, _)| value))
    }

    fn step(&self, mut progress: Progress, byte: u8) -> Option<Progress> {
        if byte == b'.' {
            if self.pointless || !matches!(progress.phase, Phase::Zero | Phase::Integer) {
                return None;
            }
            progress.phase = Phase::Point;
            for (standing, bound) in progress.against.iter_mut().zip(self.bounds()) {
                *standing = Standing { read: 0, order: bound.map_or(Ordering::Equal, |bound| whole(*standing, bound)) };
            }
            return Some(progress);
        }
        let digit = byte - b'0';
        progress.phase = match progress.phase {
            Phase::Start if digit == 0 => Phase::Zero,
            Phase::Start | Phase::Integer => Phase::Integer,
            Phase::Zero => return None,
            Phase::Point | Phase::Fraction => Phase::Fraction,
        };
        for (standing, bound) in progress.against.iter_mut().zip(self.bounds()) {
            if let Some(bound) = bound {
                *standing = compare(*standing, bound, progress.phase, digit);
            }
        }
        if let Some(divisor) = self.divisor {
            let beyond = progress.phase == Phase::Fraction && progress.fraction == divisor.scale;
            if beyond && digit != 0 {
                return None;
            }
            if !beyond {
                progress.residue = (progress.residue * 10 + u128::from(digit)) % divisor.modulus;
                progress.fraction += u32::from(progress.phase == Phase::Fraction);
            }
        }
        Some(progress)
    }

    fn accepts(&self, progress: Progress) -> bool {
        if matches!(progress.phase, Phase::Start | Phase::Point) {
            return false;
        }
        let holds = |bound: &Magnitude, standing: Standing, side: Ordering| {
            bound.as_ref().is_none_or(|(bound, excluded)| {
                let order = end(standing, bound, progress.phase);
                order == side || (order == Ordering::Equal && !excluded)
            })
        };
        let divides = |d: &Divisor| d.shift(progress.residue, d.scale - progress.fraction) == 0;
        holds(&self.low, progress.against[0], Ordering::Greater)
            && holds(&self.high, progress.against[1], Ordering::Less)
            && self.divisor.is_none_or(divides)
    }
}

/// One more digit.
fn compare(standing: Standing, bound: &Decimal, phase: Phase, digit: u8) -> Standing {
    let Standing { read, order } = standing;
    let after = phase == Phase::Fraction;
    let len = if after { bound.fraction_len() } else { bound.integer_len() };
    if after && order != Ordering::Equal {
        return standing;
    }
    if read >= len {
        // More digits before the point make it greater whatever they are; zeros after it change nothing.
        let order = if after && digit == 0 { order } else { Ordering::Greater };
        return Standing { read: if after { len } else { len + 1 }, order };
    }
    let place = if after { -1 - read } else { len - 1 - read };
    let order = order.then(digit.cmp(&bound.digit(place)));
    Standing { read: if after && order != Ordering::Equal { 0 } else { read + 1 }, order }
}

/// The order of the whole parts, all digits read.
fn whole(standing: Standing, bound: &Decimal) -> Ordering {
    standing.read.cmp(&bound.integer_len()).then(standing.order)
}

/// The order, if the number ends here.
fn end(standing: Standing, bound: &Decimal, phase: Phase) -> Ordering {
    let (order, read) =
        if phase == Phase::Fraction { (standing.order, standing.read) } else { (whole(standing, bound), 0) };
    // What is left of the bound ends in a digit that is not 0.
    order.then(read.cmp(&bound.fraction_len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::string::testing::Language;
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::from_number(&text.parse().expect("a number")).expect("few digits")
    }

    fn bounds(
        min: Option<(&str, bool)>,
        max: Option<(&str, bool)>,
        multiple_of: &[&str],
        integer: bool,
    ) -> NumberBounds {
        let bound = |(text, excluded)| (decimal(text), excluded);
        let multiple_of = multiple_of.iter().map(|text| decimal(text)).collect();
        NumberBounds { min: min.map(bound), max: max.map(bound), multiple_of, integer, pointless: false }
    }

    fn language(bounds: &NumberBounds) -> Language {
        bounded(bounds).expect("small").map_or(Language(None), |expr| Language::of(&expr))
    }

    #[track_caller]
    fn check(bounds: &NumberBounds, good: &[&str], bad: &[&str]) {
        let language = language(bounds);
        assert_eq!(good.iter().find(|text| !language.has(text)), None, "is within {bounds:?}");
        assert_eq!(bad.iter().find(|text| language.has(text)), None, "is not within {bounds:?}");
    }

    #[test]
    fn decimals_are_exact() {
        for (a, b) in [("1", "1.0"), ("1", "10e-1"), ("0", "-0.00e5"), ("-1.50", "-15E-1"), ("1e3", "1000")] {
            assert_eq!(decimal(a), decimal(b));
        }
        let sorted = [
            "-1e308",
            "-10",
            "-9.5",
            "-0.01",
            "0",
            "5e-324",
            "0.009",
            "0.01",
            "0.1",
            "9",
            "9.000000000000000000001",
            "10",
            "1e400",
        ];
        assert!(sorted.windows(2).all(|pair| decimal(pair[0]) < decimal(pair[1])));
        for (number, divisor, expected) in [
            ("0.3", "0.1", true),
            ("7", "2.5", false),
            ("7.5", "-2.5", true),
            ("0", "3", true),
            ("3", "0", false),
            ("1e300", "7", false),
            ("1e300", "2e-300", true),
            ("123456789123456789123456789123456789123456788", "123456789", false),
            ("15241578753238836750495351562536198787501905199875019052100", "123456789012345678901234567890", true),
        ] {
            assert_eq!(decimal(number).is_multiple_of(&decimal(divisor)), expected, "{number} by {divisor}");
        }
        assert_eq!(["1e3", "-0.050", "12.5"].map(|text| decimal(text).to_string()), ["1000", "-0.05", "12.5"]);
        assert!(decimal("1.0").is_integer() && !decimal("1.5").is_integer() && decimal("1e2").is_integer());
        for absurd in ["1e2000", "1e-2000", "1e99999999999999999999"] {
            assert!(Decimal::from_number(&absurd.parse().expect("a number")).is_err());
        }
    }

    #[test]
    fn unbounded_numbers_have_every_spelling() {
        let any = NumberBounds::default();
        check(
            &any,
            &["0", "-0", "10", "1.50", "1e5", "-1.5E+10", "1e-07"],
            &["", "-", "01", "1.", ".5", "+1", "1e", "0x1", "1.e5", "NaN"],
        );
        let integer = NumberBounds { integer: true, ..any.clone() };
        check(&integer, &["0", "-7", "1.0", "10.000"], &["1.5", "1.05", "1.", "01"]);
        check(&NumberBounds { pointless: true, ..integer }, &["0", "-7"], &["1.0"]);
    }

    #[test]
    fn bounds_compare_values_not_spellings() {
        let open = bounds(Some(("0", true)), None, &[], false);
        check(&open, &["0.1", "0.001", "1", "2.5", "0.0000001"], &["0", "-0", "0.0", "-0.1", "-1", "1e0"]);
        check(&bounds(Some(("0", false)), None, &[], false), &["0", "-0", "-0.00", "1"], &["-1", "-0.01"]);
        check(
            &bounds(Some(("-1.5", false)), Some(("1.05", true)), &[], false),
            &["-1.5", "-1.500", "1.049", "0", "1"],
            &["-1.51", "1.05", "1.0500", "2"],
        );
        check(
            &bounds(Some(("9.5", false)), Some(("10", false)), &[], false),
            &["9.5", "9.99", "10", "10.00"],
            &["9.49", "10.01", "100", "9"],
        );
        check(&bounds(None, Some(("-5", false)), &[], true), &["-5", "-5.0", "-6", "-10"], &["-4", "5", "0", "-5.5"]);
        check(&bounds(Some(("1", true)), Some(("1", false)), &[], false), &[], &["1", "1.0", "0", "2"]);
        let huge = bounds(Some(("-1e308", false)), Some(("1.7976931348623157e308", false)), &[], false);
        check(
            &huge,
            &["0", "-5", &format!("1{}", "0".repeat(308))],
            &[&format!("-1{}1", "0".repeat(307)), &"9".repeat(309), &"1".repeat(310)],
        );
        let tiny = bounds(Some(("5e-324", false)), None, &[], false);
        check(
            &tiny,
            &["1", &format!("0.{}5", "0".repeat(323))],
            &["0", &format!("0.{}4", "0".repeat(323)), &format!("0.{}9", "0".repeat(324))],
        );
    }

    #[test]
    fn multiples_are_exact() {
        check(
            &bounds(None, None, &["0.01"], false),
            &["0.07", "1.10", "19.99", "5", "0.070", "-0.01"],
            &["0.001", "0.071", "1e2"],
        );
        check(&bounds(None, None, &["2.5"], true), &["5", "-10", "0", "5.0"], &["2.5", "7.5", "4"]);
        check(
            &bounds(Some(("1", false)), Some(("100", false)), &["7", "3"], false),
            &["21", "84.0"],
            &["0", "105", "7", "21.5"],
        );
        check(&bounds(None, None, &["1000000"], false), &["0", "1000000", "25000000"], &["100000", "1000001"]);
        let Some(Expr::Graph(states)) = bounded(&bounds(None, None, &["1000000"], true)).expect("small") else {
            panic!("a graph")
        };
        assert!(states.len() < 40, "{} states", states.len());
        for bad in ["0", "-1", "1e40", "999983"] {
            assert!(bounded(&bounds(None, None, &[bad], true)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_literal_is_one_value() {
        for (number, good, bad) in [
            ("1", &["1", "1.0", "1e0", "1.00E+00"][..], &["10", "-1", "1.01", "01", "1e1"][..]),
            ("-12.50", &["-12.5", "-12.500", "-1.25e1", "-1.250E+01"], &["12.5", "-12.05", "-1.25e2", "-1.25"]),
            ("1e-7", &["1e-07", "1e-7", "0.0000001", "0.00000010"], &["1e7", "1e+7", "0.000001"]),
            ("1e22", &["1e+22", "10000000000000000000000", "1.0e22"], &["1e21", "1e-22", "1e2"]),
            ("0.0", &["0", "-0", "0.0", "0e5", "0E-10"], &["1", "00", "0.01"]),
        ] {
            let language = Language::of(&literal(&number.parse().expect("a number")).expect("few digits"));
            assert_eq!(good.iter().find(|text| !language.has(text)), None, "is {number}");
            assert_eq!(bad.iter().find(|text| language.has(text)), None, "is not {number}");
        }
    }

    fn any_decimal() -> impl Strategy<Value = (i64, u32)> {
        (prop_oneof![-30..30i64, -2500..2500i64], 0..4u32)
    }

    fn text((digits, places): (i64, u32), zeros: usize) -> String {
        let unit = 10u64.pow(places);
        let (sign, value) = (if digits < 0 { "-" } else { "" }, digits.unsigned_abs());
        let fraction =
            if places > 0 { format!("{:0width$}", value % unit, width = places as usize) } else { String::new() };
        let point = if fraction.is_empty() && zeros == 0 { "" } else { "." };
        format!("{sign}{}{point}{fraction}{}", value / unit, "0".repeat(zeros))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn agrees_with_arithmetic(
            min in prop::option::of((any_decimal(), any::<bool>())),
            max in prop::option::of((any_decimal(), any::<bool>())),
            divisor in prop::option::of((1..200i64, 0..4u32)),
            integer in any::<bool>(),
            numbers in prop::collection::vec((any_decimal(), 0..3usize), 40),
        ) {
            let bound = |bound: Option<((i64, u32), bool)>| bound.map(|(number, excluded)| (decimal(&text(number, 0)), excluded));
            let multiple_of = divisor.map(|number| decimal(&text(number, 0))).into_iter().collect();
            let all = NumberBounds { min: bound(min), max: bound(max), multiple_of, integer, pointless: false };
            let language = language(&all);
            let scaled = |(digits, places): (i64, u32)| digits * 10i64.pow(3 - places);
            let near = [min, max].into_iter().flatten().map(|(number, _)| (number, 0));
            for (number, zeros) in numbers.into_iter().chain(near) {
                let value = scaled(number);
                let expected = min.is_none_or(|(bound, excluded)| value > scaled(bound) || (value == scaled(bound) && !excluded))
                    && max.is_none_or(|(bound, excluded)| value < scaled(bound) || (value == scaled(bound) && !excluded))
                    && divisor.is_none_or(|divisor| value % scaled(divisor) == 0)
                    && (!integer || value % 1000 == 0);
                prop_assert_eq!(language.has(&text(number, zeros)), expected, "{} in {:?}", text(number, zeros), all);
            }
        }
    }
}

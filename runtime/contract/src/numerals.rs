//! Numbers as people write them: ASCII, full-width and Chinese, read exactly or refused.
//!
//! | written | read as | |
//! |---|---|---|
//! | `3` `-7` `+5` `3.0` `1e3` `.5` | 3 -7 5 3 1000 0.5 | spaces around it do not matter |
//! | `３` `－１．５` | 3 -1.5 | full-width forms are their ASCII twins |
//! | 三 十一 二十三 一百零五 两千两百二十五 | 3 11 23 105 2225 | 两 (兩) stands before 百 千 万 亿, or alone |
//! | 二百五 三千二 一万三 | 250 3200 13000 | a last digit after 百 千 万 counts the next lower unit |
//! | 壹佰贰拾叁 一百六十八萬 廿三 | 123 1680000 23 | formal and traditional forms, 廿 卅 卌 |
//! | 负三 三点五 零点零五 | -3 3.5 0.05 | 点 is followed by digits alone |
//! | 三点五万 3.5万 1亿 | 35000 35000 100000000 | 万 or 亿 behind a decimal |
//! | 3百 3千 2百万 3千万 | 300 3000 2000000 30000000 | 百 and 千 only behind one in digits |
//! | 二〇二四 一二三 | 2024 123 | digits one by one: three or more, or with a zero |
//!
//! 零 stands where a unit is skipped, and nowhere else (but may also follow 万 and 亿). Refused, for
//! they would be guesses: 二三 ("two or three"), 五六十, 一亿三千 (一亿零三千 or 一亿三千万), 三亿五, 兆, 俩,
//! 三个, 几个, `50%`, `1,000`, `0x10`, `1_000`, `5.`. Refused, for something would be lost: `007` (a code whose
//! zeros a number does not keep, and octal to some), a fraction where an integer is declared, and
//! what passes 64 bits or a double.

/// A number that was read, exactly as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numeral {
    negative: bool,
    /// The digits before the point, without leading zeros but for a single one.
    whole: String,
    /// The digits behind the point.
    fraction: String,
    /// The power of ten it is multiplied by.
    exponent: i64,
}

/// Why a text is no number of the kind that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not written as a number.
    NoNumber,
    /// A number and what it counts.
    Unit,
    /// A number with a sign of percent, which would be as it is or a hundredth.
    Percent,
    /// A number with separators among its digits, which are decimal points to some.
    Separated,
    /// It begins with zeros that a number does not keep.
    LeadingZeros,
    /// It can be read in more than one way.
    Ambiguous,
    /// It has a fraction, and an integer is wanted.
    Fraction,
    /// It is too large or too small to be kept exactly.
    OutOfRange,
}

impl Refusal {
    /// What would have been right, to stand behind the name of the type.
    pub(crate) fn wanted(self) -> Option<&'static str> {
        match self {
            Refusal::NoNumber => None,
            Refusal::Unit => Some("written without a unit or other words behind it"),
            Refusal::Percent => Some("written without %, for 50% can be 50 or 0.5"),
            Refusal::Separated => Some("written without separators between its digits"),
            Refusal::LeadingZeros => Some("written without leading zeros"),
            Refusal::Ambiguous => Some("written in digits, for this can be read in two ways"),
            Refusal::Fraction => Some("for nothing is rounded"),
            Refusal::OutOfRange => Some("within 64 bits or the range of a double"),
        }
    }
}

/// Reads a text that is one number and nothing else.
///
/// # Errors
/// [`Refusal`], never for a fraction or for its size.
pub(crate) fn read(text: &str) -> Result<Numeral, Refusal> {
    let text: String = text.trim().chars().map(narrow).collect();
    plain(&text).map_err(|refusal| match refusal {
        Refusal::NoNumber => more_than_a_number(&text),
        other => other,
    })
}

fn plain(text: &str) -> Result<Numeral, Refusal> {
    if text.bytes().any(|byte| byte.is_ascii_digit()) { ascii(text) } else { chinese(text) }
}

/// What a text has besides its number, where that is what keeps it from being one.
fn more_than_a_number(text: &str) -> Refusal {
    let is_separator = |character: char| matches!(character, ',' | '_' | '\'' | ' ');
    let digits = text.trim_start_matches(['+', '-']);
    let first_is_digit = digits.starts_with(|character: char| character.is_ascii_digit());
    if first_is_digit && digits.contains(is_separator) && plain(&text.replace(is_separator, "")).is_ok() {
        return Refusal::Separated;
    }
    // 兆 is a million or a million millions, 点 a point, and an e lacks its power.
    let is_unit = |character: char| {
        character.is_alphabetic() && sign(character).is_none() && !"兆点點eE".contains(character)
    };
    let (number, refusal) = match text.strip_suffix('%') {
        Some(number) => (number, Refusal::Percent),
        None => (text.trim_end_matches(is_unit), Refusal::Unit),
    };
    if number.len() < text.len() && plain(number.trim_end()).is_ok() { refusal } else { Refusal::NoNumber }
}

impl Numeral {
    /// The JSON text of this number as an integer of at most 64 bits.
    pub(crate) fn integer(&self) -> Result<String, Refusal> {
        /// More digits than 64 bits have.
        const DIGITS_MAX: i64 = 20;
        let fraction = self.fraction.trim_end_matches('0');
        let mut digits = format!("{}{fraction}", self.whole);
        let digits_before_point = i64::try_from(self.whole.len()).unwrap_or(i64::MAX);
        if digits.bytes().all(|byte| byte == b'0') {
            return Ok("0".to_owned());
        }
        let point = digits_before_point.saturating_add(self.exponent);
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let behind = digits.trim_end_matches('0').len();
        if point < i64::try_from(behind).unwrap_or(i64::MAX) {
            return Err(Refusal::Fraction);
        }
        let zeros_before = digits.len() - digits.trim_start_matches('0').len();
        if point - i64::try_from(zeros_before).unwrap_or(0) > DIGITS_MAX {
            return Err(Refusal::OutOfRange);
        }
        if point < length {
            digits.truncate(usize::try_from(point).unwrap_or(0));
        } else {
            digits.extend(std::iter::repeat_n('0', usize::try_from(point - length).unwrap_or(0)));
        }
        let text = format!("{}{}", self.sign(), digits.trim_start_matches('0'));
        let fits = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
        if fits { Ok(text) } else { Err(Refusal::OutOfRange) }
    }

    /// The JSON text of this number, every digit kept.
    pub(crate) fn number(&self) -> Result<String, Refusal> {
        match self.integer() {
            Ok(integer) => return Ok(integer),
            Err(Refusal::OutOfRange) if self.fraction.is_empty() && self.exponent == 0 => {
                return Err(Refusal::OutOfRange);
            }
            Err(_) => {}
        }
        let mut text = format!("{}{}", self.sign(), self.whole);
        if !self.fraction.is_empty() {
            text.push('.');
            text.push_str(&self.fraction);
        }
        if self.exponent != 0 {
            text.push_str(&format!("e{}", self.exponent));
        }
        // It is not zero, or it would be an integer: a double that is has lost everything.
        match text.parse::<f64>() {
            Ok(double) if double.is_finite() && double != 0.0 => Ok(text),
            _ => Err(Refusal::OutOfRange),
        }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }
}

/// The ASCII twin of a full-width character.
pub(crate) fn narrow(character: char) -> char {
    const FULL_WIDTH_OFFSET: u32 = 0xFEE0;
    match character {
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(character) - FULL_WIDTH_OFFSET).unwrap_or(character)
        }
        '\u{2212}' => '-',
        other => other,
    }
}

/// `[+-] digits [. digits] [e [+-] digits]`, or a scale such as 万 in place of the exponent.
fn ascii(text: &str) -> Result<Numeral, Refusal> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (rest, scale) = scaled(rest, BEHIND_DIGITS);
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    if scale > 0 && exponent.is_some() {
        return Err(Refusal::NoNumber);
    }
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return Err(Refusal::NoNumber),
        Some((whole, fraction)) => (whole, fraction),
        None => (mantissa, ""),
    };
    let exponent = exponent.map_or(Ok(scale), power)?;
    let all_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(Refusal::NoNumber);
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Err(Refusal::LeadingZeros);
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Numeral { negative, whole: whole.to_owned(), fraction: fraction.to_owned(), exponent })
}

/// What stands behind the `e`; one beyond all bounds is as good as the bound.
fn power(text: &str) -> Result<i64, Refusal> {
    const POWER_MAX: i64 = 1_000_000;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::NoNumber);
    }
    let power = digits.parse::<i64>().unwrap_or(POWER_MAX).min(POWER_MAX);
    Ok(if text.starts_with('-') { -power } else { power })
}

/// What may stand behind a decimal, and the power of ten it stands for; the longer come first.
type Scales = &'static [(&'static [&'static str], i64)];

/// Behind one in Chinese: 一点五千 is not said.
const BEHIND_CHINESE: Scales = &[(&["万亿", "萬億"], 12), (&["亿", "億"], 8), (&["万", "萬"], 4)];

/// Behind one in digits.
const BEHIND_DIGITS: Scales = &[
    (&["万亿", "萬億"], 12),
    (&["千亿", "千億"], 11),
    (&["百亿", "百億"], 10),
    (&["亿", "億"], 8),
    (&["千万", "千萬"], 7),
    (&["百万", "百萬"], 6),
    (&["万", "萬"], 4),
    (&["千"], 3),
    (&["百"], 2),
];

/// A decimal without the scale behind it, and the power of ten that stands for.
fn scaled(text: &str, scales: Scales) -> (&str, i64) {
    for (names, power) in scales {
        for name in *names {
            if let Some(rest) = text.strip_suffix(name) {
                return (rest, *power);
            }
        }
    }
    (text, 0)
}

/// What a character of a Chinese number stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Digit(u64),
    /// 两: a two that is said only before a unit, or alone.
    Pair,
    /// 十 百 千.
    Unit(u64),
    /// 廿 卅 卌: so many tens in one character.
    Tens(u64),
    /// 万 亿.
    Big(u64),
}

const WAN: u64 = 10_000;
const YI: u64 = 100_000_000;

fn sign(character: char) -> Option<Sign> {
    Some(match character {
        '零' | '〇' => Sign::Digit(0),
        '一' | '壹' => Sign::Digit(1),
        '二' | '贰' | '貳' => Sign::Digit(2),
        '三' | '叁' | '參' => Sign::Digit(3),
        '四' | '肆' => Sign::Digit(4),
        '五' | '伍' => Sign::Digit(5),
        '六' | '陆' | '陸' => Sign::Digit(6),
        '七' | '柒' => Sign::Digit(7),
        '八' | '捌' => Sign::Digit(8),
        '九' | '玖' => Sign::Digit(9),
        '两' | '兩' => Sign::Pair,
        '十' | '拾' => Sign::Unit(10),
        '百' | '佰' => Sign::Unit(100),
        '千' | '仟' => Sign::Unit(1_000),
        '廿' => Sign::Tens(2),
        '卅' => Sign::Tens(3),
        '卌' => Sign::Tens(4),
        '万' | '萬' => Sign::Big(WAN),
        '亿' | '億' => Sign::Big(YI),
        _ => return None,
    })
}

fn chinese(text: &str) -> Result<Numeral, Refusal> {
    let (negative, rest) = match text.strip_prefix(['负', '負']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let Some((whole, fraction)) = rest.split_once(['点', '點']) else {
        let whole = amount(&signs(rest)?)?.to_string();
        return Ok(Numeral { negative, whole, fraction: String::new(), exponent: 0 });
    };
    let (fraction, exponent) = scaled(fraction, BEHIND_CHINESE);
    let digit = |sign: &Sign| match sign {
        Sign::Digit(digit) => Ok(digit.to_string()),
        Sign::Pair | Sign::Unit(_) | Sign::Tens(_) | Sign::Big(_) => Err(Refusal::NoNumber),
    };
    let fraction = signs(fraction)?.iter().map(digit).collect::<Result<String, Refusal>>()?;
    Ok(Numeral { negative, whole: amount(&signs(whole)?)?.to_string(), fraction, exponent })
}

fn signs(text: &str) -> Result<Vec<Sign>, Refusal> {
    let signs: Vec<Sign> = text.chars().map(sign).collect::<Option<_>>().ok_or(Refusal::NoNumber)?;
    if signs.is_empty() { Err(Refusal::NoNumber) } else { Ok(signs) }
}

/// A whole number in Chinese.
fn amount(signs: &[Sign]) -> Result<u64, Refusal> {
    let digits: Option<Vec<u64>> = signs
        .iter()
        .map(|sign| match sign {
            Sign::Digit(digit) => Some(*digit),
            Sign::Pair | Sign::Unit(_) | Sign::Tens(_) | Sign::Big(_) => None,
        })
        .collect();
    if let Some(digits) = digits {
        return one_by_one(&digits);
    }
    let mut counting = Counting { total: 0, last: None, skipped: false };
    match split(signs, YI)? {
        Some((before, behind)) => {
            counting.part(before, YI)?;
            counting.last = Some(YI);
            counting.part(behind, 1)?;
        }
        None => counting.part(signs, 1)?,
    }
    Ok(counting.total)
}

/// Digits without a unit: one, three or more, or such as have a zero among them.
fn one_by_one(digits: &[u64]) -> Result<u64, Refusal> {
    match digits {
        [digit] => Ok(*digit),
        [0, ..] => Err(Refusal::LeadingZeros),
        // "Two or three" as much as twenty-three.
        [_, 1..=9] => Err(Refusal::Ambiguous),
        _ => digits.iter().try_fold(0_u64, |total, digit| {
            total.checked_mul(10).and_then(|total| total.checked_add(*digit)).ok_or(Refusal::OutOfRange)
        }),
    }
}

type Halves<'s> = (&'s [Sign], &'s [Sign]);

/// What stands before and behind the only such unit.
fn split(signs: &[Sign], unit: u64) -> Result<Option<Halves<'_>>, Refusal> {
    let mut places = signs.iter().enumerate().filter(|(_, sign)| **sign == Sign::Big(unit));
    let Some((place, _)) = places.next() else { return Ok(None) };
    if place == 0 || places.next().is_some() {
        return Err(Refusal::NoNumber);
    }
    Ok(Some((&signs[..place], &signs[place + 1..])))
}

/// A number being added up from its highest unit down.
struct Counting {
    total: u64,
    /// The value of the last unit; what follows counts lower ones.
    last: Option<u64>,
    /// Whether a 零 stands before what comes next.
    skipped: bool,
}

impl Counting {
    /// A part below 亿, its units worth `scale` times their own value.
    fn part(&mut self, signs: &[Sign], scale: u64) -> Result<(), Refusal> {
        match split(signs, WAN)? {
            Some((before, behind)) => {
                self.section(before, WAN * scale)?;
                // Lower units may follow, whatever the last one before it was.
                self.last = Some(WAN * scale);
                self.section(behind, scale)
            }
            None => self.section(signs, scale),
        }
    }

    /// A part below 万.
    fn section(&mut self, signs: &[Sign], scale: u64) -> Result<(), Refusal> {
        let is_first = self.last.is_none();
        let mut rest = signs;
        while let Some((&sign, behind)) = rest.split_first() {
            rest = behind;
            let (digit, is_pair) = match sign {
                Sign::Digit(0) if !self.skipped && self.last.is_some() && !rest.is_empty() => {
                    self.skipped = true;
                    continue;
                }
                Sign::Digit(0) | Sign::Big(_) => return Err(Refusal::NoNumber),
                Sign::Tens(tens) => {
                    self.add(tens, 10 * scale)?;
                    continue;
                }
                // 十 alone is one ten; no other unit is said without its digit.
                Sign::Unit(10) => {
                    self.add(1, 10 * scale)?;
                    continue;
                }
                Sign::Unit(_) => return Err(Refusal::NoNumber),
                Sign::Digit(digit) => (digit, false),
                Sign::Pair => (2, true),
            };
            match rest.split_first() {
                Some((&Sign::Unit(unit), behind)) => {
                    if is_pair && unit == 10 {
                        return Err(Refusal::NoNumber);
                    }
                    rest = behind;
                    self.add(digit, unit * scale)?;
                }
                // 五六十 is "fifty or sixty".
                Some((Sign::Digit(1..=9), _)) => return Err(Refusal::Ambiguous),
                Some(_) => return Err(Refusal::NoNumber),
                None if is_pair && !(is_first && signs.len() == 1) => return Err(Refusal::NoNumber),
                None => self.last_digit(digit, scale)?,
            }
        }
        Ok(())
    }

    /// A digit with no unit behind it: ones, or the next lower unit where that was left out.
    fn last_digit(&mut self, digit: u64, scale: u64) -> Result<(), Refusal> {
        let left_out = match self.last {
            Some(last) if last > 10 * scale && !self.skipped => Some(last),
            _ => None,
        };
        match left_out {
            None => self.add(digit, scale),
            // Before 万 and 亿 units are worth more than these: a unit is left out only at the very end.
            Some(last @ (100 | 1_000 | WAN)) => self.add(digit, last / 10),
            Some(_) => Err(Refusal::Ambiguous),
        }
    }

    /// Adds so many of a unit, which must be the next lower one, or come behind a 零.
    fn add(&mut self, digit: u64, unit: u64) -> Result<(), Refusal> {
        if let Some(last) = self.last {
            let is_next = unit == last / 10;
            let may_skip = unit < last && self.skipped;
            let is_tidy = !self.skipped || !is_next || matches!(last, WAN | YI);
            if !((is_next || may_skip) && is_tidy) {
                return Err(if unit < last && !self.skipped {
                    Refusal::Ambiguous
                } else {
                    Refusal::NoNumber
                });
            }
        }
        self.total += digit * unit;
        self.last = Some(unit);
        self.skipped = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Numerals read, refused, and read back from a writer of their own.

use super::*;

fn integer(text: &str) -> Result<String, Refusal> {
    read(text).and_then(|numeral| numeral.integer())
}

fn number(text: &str) -> Result<String, Refusal> {
    read(text).and_then(|numeral| numeral.number())
}

#[track_caller]
fn integers(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(integer(text).as_deref(), Ok(*expected), "{text}");
        assert_eq!(number(text).as_deref(), Ok(*expected), "{text} as a number");
    }
}

#[track_caller]
fn refused(refusal: Refusal, texts: &[&str]) {
    for text in texts {
        assert_eq!(integer(text), Err(refusal), "{text}");
    }
}

#[test]
fn ascii_and_full_width_integers_keep_every_digit() {
    integers(&[
        ("3", "3"),
        (" 3 ", "3"),
        ("\u{3000}3\t", "3"),
        ("-7", "-7"),
        ("\u{2212}7", "-7"),
        ("+5", "5"),
        ("3.0", "3"),
        ("3.000e0", "3"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("1.25e2", "125"),
        ("0.05e2", "5"),
        ("1200e-2", "12"),
        ("0", "0"),
        ("-0", "0"),
        ("0.00", "0"),
        ("0e999999999999", "0"),
        ("３", "3"),
        ("－１２", "-12"),
        ("＋５", "5"),
        ("３．０", "3"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("2512292042121000001", "2512292042121000001"),
        ("1e19", "10000000000000000000"),
    ]);
}

#[test]
fn numbers_with_a_fraction_are_kept_as_they_are_written() {
    for (text, expected) in [
        ("3.7", "3.7"),
        ("3.70", "3.70"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("2.5E-3", "2.5e-3"),
        ("1e30", "1e30"),
        ("９．５", "9.5"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("9007199254740993.5", "9007199254740993.5"),
        ("三点五", "3.5"),
        ("負三點五", "-3.5"),
        ("零点零五", "0.05"),
        ("两点五", "2.5"),
        ("一百零二点二五", "102.25"),
    ] {
        assert_eq!(number(text).as_deref(), Ok(expected), "{text}");
    }
    refused(Refusal::Fraction, &["3.7", "0.5", "1e-1", "1250e-2", "三点五", "-0.1", "1e-999999999999"]);
}

#[test]
fn what_would_lose_something_is_refused() {
    refused(Refusal::LeadingZeros, &["007", "-01", "00", "００７", "01.5", "零零七", "〇三"]);
    refused(
        Refusal::OutOfRange,
        &["18446744073709551616", "-9223372036854775809", "1e20", "1e400", "1e999999999999", "1e30"],
    );
    for text in ["1e400", "-1e400", "1e-400", "99999999999999999999", "0.1e-999999999999"] {
        assert_eq!(number(text), Err(Refusal::OutOfRange), "{text}");
    }
    let long = "9".repeat(1_000_000);
    assert_eq!(number(&long), Err(Refusal::OutOfRange));
}

#[test]
fn what_is_no_number_is_refused() {
    refused(
        Refusal::NoNumber,
        &[
            "", " ", "x", "0x10", "5.", ".", "+", "-", "--3", "+-3", "1e", "e5", "1e5.5", "1.2.3", "NaN",
            "Infinity", "1/2", "%", "null", "true", "[1]", "٣", "3百5", "3十", "千", "1,000,x",
        ],
    );
    refused(Refusal::Unit, &["3个", "三个", "两周", "5 kg", "三百块", "三点五公里", "-3天", "３个"]);
    refused(Refusal::Percent, &["50%", "50 %", "50％", "五十%"]);
    refused(Refusal::Separated, &["1,000", "1，000", "1_000", "1 000 000", "-1,000.5", "3 4"]);
}

#[test]
fn chinese_numbers() {
    integers(&[
        ("零", "0"),
        ("〇", "0"),
        ("一", "1"),
        ("两", "2"),
        ("十", "10"),
        ("十一", "11"),
        ("一十一", "11"),
        ("二十", "20"),
        ("二十三", "23"),
        ("一百", "100"),
        ("一百零五", "105"),
        ("一百一十", "110"),
        ("一百一十五", "115"),
        ("一百十五", "115"),
        ("两百", "200"),
        ("两百零五", "205"),
        ("一千零一", "1001"),
        ("一千零十", "1010"),
        ("一千零五十", "1050"),
        ("一千一百零五", "1105"),
        ("两千两百二十五", "2225"),
        ("两万", "20000"),
        ("一万零三", "10003"),
        ("一万零三百", "10300"),
        ("十万", "100000"),
        ("二十万五千", "205000"),
        ("二十万零五千", "205000"),
        ("一百零五万", "1050000"),
        ("一百六十八萬", "1680000"),
        ("一亿零三", "100000003"),
        ("一亿零三百万", "103000000"),
        ("一亿三千万", "130000000"),
        ("两亿", "200000000"),
        ("三万五千亿", "3500000000000"),
        ("一万亿", "1000000000000"),
        ("九千九百九十九万九千九百九十九亿九千九百九十九万九千九百九十九", "9999999999999999"),
        ("负三", "-3"),
        ("负零", "0"),
        ("負兩百", "-200"),
        (" 三 ", "3"),
    ]);
}

#[test]
fn formal_traditional_and_short_forms() {
    integers(&[
        ("壹佰贰拾叁", "123"),
        ("壹仟肆佰伍拾陆", "1456"),
        ("柒捌玖", "789"),
        ("貳參陸", "236"),
        ("兩萬億", "2000000000000"),
        ("廿", "20"),
        ("廿三", "23"),
        ("一百卅五", "135"),
        ("卌二", "42"),
    ]);
}

#[test]
fn a_last_digit_counts_the_next_lower_unit() {
    integers(&[
        ("二百五", "250"),
        ("一百一", "110"),
        ("三千二", "3200"),
        ("三千二百五", "3250"),
        ("一万三", "13000"),
        ("十五万三", "153000"),
        ("一亿三千万五", "130005000"),
    ]);
}

#[test]
fn digits_one_by_one_and_decimals_with_a_scale() {
    integers(&[
        ("二〇二四", "2024"),
        ("二零二四", "2024"),
        ("一〇", "10"),
        ("一二三", "123"),
        ("三点五万", "35000"),
        ("三点五亿", "350000000"),
        ("3.5万", "35000"),
        ("３万", "30000"),
        ("1億", "100000000"),
        ("2万亿", "2000000000000"),
        ("3百", "300"),
        ("3千", "3000"),
        ("1.5千", "1500"),
        ("2百万", "2000000"),
        ("3千萬", "30000000"),
        ("3千亿", "300000000000"),
    ]);
    assert_eq!(integer("三点五五五五五万"), Err(Refusal::Fraction));
    assert_eq!(number("三点五五五五五万").as_deref(), Ok("3.55555e4"));
    assert_eq!(integer("九九九九九九九九九九九九九九九九九九九九九"), Err(Refusal::OutOfRange));
}

#[test]
fn what_would_be_a_guess_is_refused() {
    refused(
        Refusal::Ambiguous,
        &["二三", "三五", "五六十", "三四百", "一亿三千", "三亿五", "一百五万", "一千五十", "一万三百"],
    );
    refused(
        Refusal::NoNumber,
        &[
            "几个",
            "俩",
            "兆",
            "一兆",
            "百",
            "千",
            "万",
            "亿",
            "百五",
            "一百百",
            "十十",
            "二十十",
            "两十",
            "一百零两",
            "二十两",
            "一百零",
            "零一百",
            "一百零零五",
            "一百零五十",
            "一千零五百",
            "一十百",
            "十百",
            "一百千",
            "一万万",
            "一亿亿",
            "万亿",
            "一亿万",
            "一点",
            "点五",
            "一点两",
            "一点十",
            "一点五千",
            "负",
            "负负三",
            "正三",
            "-三",
            "第三",
            "三分之一",
            "半",
            "一万零三千零",
            "一百二廿",
            "一万两",
            "一万零",
            "一亿零万",
        ],
    );
}

/// Standard Chinese, written group by group from the lowest: another way than the reader's.
fn written(mut number: u64) -> String {
    const DIGITS: [&str; 10] = ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九"];
    if number == 0 {
        return DIGITS[0].to_owned();
    }
    let mut text = String::new();
    let mut behind_needs_zero = false;
    for group_name in ["", "万", "亿", "万亿"] {
        let group = number % 10_000;
        number /= 10_000;
        let mut words = String::new();
        for (power, unit) in [(1_000, "千"), (100, "百"), (10, "十"), (1, "")] {
            match group / power % 10 {
                0 if !words.is_empty() && !words.ends_with('零') => words.push('零'),
                0 => {}
                digit => words.push_str(&format!("{}{unit}", DIGITS[usize::try_from(digit).unwrap()])),
            }
        }
        let words = words.trim_end_matches('零');
        if group > 0 {
            // 一万亿 has one 亿 for both of its groups.
            let name = if group_name == "万亿" && text.contains('亿') { "万" } else { group_name };
            let zero = if behind_needs_zero { "零" } else { "" };
            text = format!("{words}{name}{zero}{text}");
        }
        behind_needs_zero = !text.is_empty() && group < 1_000;
    }
    text
}

#[test]
fn every_number_written_in_chinese_is_read_back() {
    assert_eq!(written(10_010), "一万零一十");
    assert_eq!(written(1_020_030_000_405), "一万零二百亿三千万零四百零五");
    for number in 0..=99_999_u64 {
        assert_eq!(integer(&written(number)), Ok(number.to_string()), "{}", written(number));
    }
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..100_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Shifted by a random width, so that all lengths come up.
        let number = ((seed >> 20) >> (seed % 40)) % 1_000_000_000_000;
        let text = written(number);
        assert_eq!(integer(&text), Ok(number.to_string()), "{text}");
        assert_eq!(integer(&format!("负{text}")).map(|it| it.replace('-', "")), Ok(number.to_string()));
    }
}

#[test]
fn no_text_makes_the_reader_fail() {
    let signs: Vec<char> = "零一二两十百千万亿点负廿3.e-".chars().collect();
    for a in &signs {
        for b in &signs {
            for c in &signs {
                for d in &signs {
                    drop(number(&String::from_iter([a, b, c, d])));
                }
            }
        }
    }
}

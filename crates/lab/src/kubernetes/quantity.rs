//! Amounts as Kubernetes writes them: `1500m`, `4Gi`, `2`.

use std::cmp::Ordering;

/// How an amount was written, which decides how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `1500m`, `2`, `3k`.
    Decimal,
    /// `4Gi`.
    Binary,
    /// `1e3`.
    Exponent,
}

/// An amount, exact to a thousand-millionth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    /// Thousand-millionths.
    nano: i128,
    form: Form,
}

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// Nothing.
    pub(super) const ZERO: Self = Self { nano: 0, form: Form::Decimal };

    /// Reads one. `None` for what is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let end = text
            .char_indices()
            .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && "+-".contains(*c))))
            .map_or(text.len(), |(at, _)| at);
        let (number, suffix) = text.split_at_checked(end)?;
        let negative = number.starts_with('-');
        let digits = number.trim_start_matches(['+', '-']);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (factor, divisor, form) = scale(suffix)?;
        let mut value = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? };
        let mut parts: i128 = 1;
        for digit in fraction.chars().take(12) {
            value = value.checked_mul(10)?.checked_add(i128::from(digit.to_digit(10)?))?;
            parts = parts.checked_mul(10)?;
        }
        let nano = value.checked_mul(NANO)?.checked_mul(factor)?;
        let over = parts.checked_mul(divisor)?;
        // What is finer than can be kept is rounded away from zero, as the server does.
        let nano = nano.checked_add(over - 1)?.checked_div(over)?;
        Some(Self { nano: if negative { -nano } else { nano }, form })
    }

    /// Whether it is less than nothing.
    pub(super) fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whether it is a whole number.
    pub(super) fn is_whole(self) -> bool {
        self.nano % NANO == 0
    }

    /// As a whole number, rounded up.
    pub(super) fn whole(self) -> i64 {
        i64::try_from((self.nano + NANO - 1).div_euclid(NANO)).unwrap_or(i64::MAX)
    }

    /// The thousandths of it that a fraction of whole numbers has, for `500m`.
    pub(super) fn milli(self) -> i128 {
        self.nano / 1_000_000
    }

    /// Both together; printed as the first that is something was.
    pub(super) fn plus(self, other: Self) -> Self {
        let form = if self.nano == 0 { other.form } else { self.form };
        Self { nano: self.nano.saturating_add(other.nano), form }
    }

    /// The larger of two.
    pub(super) fn max(self, other: Self) -> Self {
        if self.order(other) == Ordering::Less { other } else { self }
    }

    /// Which is more.
    pub(super) fn order(self, other: Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }

    /// As the server gives it back: `4096Mi` is `4Gi`, `1000m` is `1`.
    pub(super) fn canonical(self) -> String {
        if self.nano == 0 {
            return "0".to_owned();
        }
        if self.form == Form::Binary && self.is_whole() && self.nano.abs() >= 1024 * NANO {
            let mut value = self.nano / NANO;
            let mut suffix = "";
            for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
                if value % 1024 != 0 {
                    break;
                }
                (value, suffix) = (value / 1024, next);
            }
            return format!("{value}{suffix}");
        }
        let mut value = self.nano;
        let mut power = -9;
        while value % 1000 == 0 && power < 18 {
            (value, power) = (value / 1000, power + 3);
        }
        if self.form == Form::Exponent {
            return if power == 0 { value.to_string() } else { format!("{value}e{power}") };
        }
        let suffix = match power {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => "",
        };
        format!("{value}{suffix}")
    }
}

/// By what a suffix multiplies and divides.
fn scale(suffix: &str) -> Option<(i128, i128, Form)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 1, Form::Binary));
    let decimal = |power: u32| Some((10_i128.pow(power), 1, Form::Decimal));
    match suffix {
        "" => decimal(0),
        "n" => Some((1, NANO, Form::Decimal)),
        "u" => Some((1, 1_000_000, Form::Decimal)),
        "m" => Some((1, 1000, Form::Decimal)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 {
                Some((1, size, Form::Exponent))
            } else {
                Some((size, 1, Form::Exponent))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn amounts_are_given_back_as_the_recorded_server_gives_them() {
        for (written, given_back) in [
            ("4096Mi", "4Gi"),
            ("32780Mi", "32780Mi"),
            ("94371840000", "94371840k"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("0.5Gi", "512Mi"),
            ("1e3", "1e3"),
            ("-1", "-1"),
            ("0", "0"),
            ("100Gi", "100Gi"),
        ] {
            let quantity = Quantity::parse(written).unwrap();
            assert_eq!(quantity.canonical(), given_back, "{written}");
        }
        for nonsense in ["", "lots", "1 Gi", "1.2.3", "Gi", "-", "1e", "1KiB"] {
            assert!(Quantity::parse(nonsense).is_none(), "{nonsense}");
        }
    }
}

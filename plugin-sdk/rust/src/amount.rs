//! How far something is, in whatever numbers the author counts.

/// A number that says how much is done: any integer or float, such as a count of files or a part of 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how much is done",
    note = "progress takes two numbers and a text, such as `progress(3, 10, \"reading\")` or `progress(0.5, 1, \"reading\")`"
)]
pub trait Amount {
    /// It as JSON has it.
    fn amount(self) -> f64;
}

/// Of how much: an [`Amount`], or `None` where that is not known.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say of how much",
    note = "progress takes two numbers and a text, such as `progress(3, 10, \"reading\")`; `None` where the total is not known"
)]
pub trait Total {
    /// It as JSON has it.
    fn total(self) -> Option<f64>;
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Amount for $number {
            fn amount(self) -> f64 {
                self as f64
            }
        }

        impl Total for $number {
            fn total(self) -> Option<f64> {
                Some(self as f64)
            }
        }
    )* };
}

numbers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

// One kind of option only: of several, a bare `None` could be any.
impl Total for Option<f64> {
    fn total(self) -> Option<f64> {
        self
    }
}

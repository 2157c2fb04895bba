//! Numbers that JSON has not: refused, where serde_json would write `null` for them.

use std::fmt::Display;

use serde::ser::{self, Error, Serialize, Serializer};

/// What it holds, serialised as it is; an infinite number or NaN in it is an error.
pub(crate) struct Finite<'a, T: ?Sized>(pub(crate) &'a T);

impl<T: Serialize + ?Sized> Serialize for Finite<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Refusing(serializer))
    }
}

/// Hands everything on to the serializer that it holds, values as [`Finite`] ones.
struct Refusing<S>(S);

fn refused<E: Error>(number: impl Display) -> E {
    E::custom(format_args!("{number} is no number of JSON"))
}

/// Methods that hand a value on as it is.
macro_rules! hands_on {
    ($($method:ident: $ty:ty),*) => {
        $(fn $method(self, value: $ty) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        })*
    };
}

impl<S: Serializer> Serializer for Refusing<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Refusing<S::SerializeSeq>;
    type SerializeTuple = Refusing<S::SerializeTuple>;
    type SerializeTupleStruct = Refusing<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Refusing<S::SerializeTupleVariant>;
    type SerializeMap = Refusing<S::SerializeMap>;
    type SerializeStruct = Refusing<S::SerializeStruct>;
    type SerializeStructVariant = Refusing<S::SerializeStructVariant>;

    hands_on! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        if value.is_finite() { self.0.serialize_f32(value) } else { Err(refused(value)) }
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        if value.is_finite() { self.0.serialize_f64(value) } else { Err(refused(value)) }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Finite(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Finite(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Finite(value))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(length).map(Refusing)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(length).map(Refusing)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, length).map(Refusing)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, index, variant, length).map(Refusing)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(length).map(Refusing)
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, length).map(Refusing)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, index, variant, length).map(Refusing)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// A list of some kind, whose members are values.
macro_rules! list {
    ($($kind:ident: $member:ident),*) => {
        $(impl<S: ser::$kind> ser::$kind for Refusing<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $member<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$member(&Finite(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

list! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

/// An object of some kind, whose members have names.
macro_rules! object {
    ($($kind:ident),*) => {
        $(impl<S: ser::$kind> ser::$kind for Refusing<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.serialize_field(name, &Finite(value))
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
                self.0.skip_field(name)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

object! { SerializeStruct, SerializeStructVariant }

impl<S: ser::SerializeMap> ser::SerializeMap for Refusing<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(&Finite(key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Finite(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;
    use serde_json::{json, to_string};

    use super::*;

    #[derive(serde::Serialize)]
    enum Any<'a> {
        Unit,
        New(f64),
        Tuple(f32, i128),
        Struct { of: Option<Box<Any<'a>>>, raw: &'a RawValue },
    }

    fn all(number: f64) -> impl Serialize {
        let raw = RawValue::from_string("18446744073709551616.10".to_owned()).expect("JSON");
        let raw: &'static RawValue = Box::leak(raw);
        let of = Some(Box::new(Any::New(number)));
        (
            [Any::Unit, Any::Tuple(0.5, -1), Any::Struct { of, raw }],
            BTreeMap::from([(1_u8, vec![Some(number), None])]),
            ("c", 'c', (), true, json!({"v": [1.5]})),
        )
    }

    #[test]
    fn what_is_json_is_written_as_ever() {
        let value = all(2.5);
        assert_eq!(to_string(&Finite(&value)).expect("JSON"), to_string(&value).expect("JSON"));
    }

    #[test]
    fn what_is_none_is_refused_wherever_it_is() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = to_string(&Finite(&all(number))).expect_err("no JSON").to_string();
            assert_eq!(refused, format!("{number} is no number of JSON"));
        }
        assert!(to_string(&Finite(&[Some(f32::NAN)])).is_err());
    }
}

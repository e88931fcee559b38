//! That machine values have each key once: structures that are flattened into each other can have one key twice, and most
//! readers of JSON then see the last one alone.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// What is wrong with the keys of the JSON that values make, if anything is.
pub(super) fn fault(values: &dyn erased_serde::Serialize) -> Option<String> {
    let json = serde_json::to_string(values).expect("values are JSON");
    serde_json::from_str::<Once>(&json).err().map(|error| error.to_string())
}

/// Any JSON whose objects have each key once.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Once, D::Error> {
        deserializer.deserialize_any(Once)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Once, A::Error> {
        while seq.next_element::<Once>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Once>()?;
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("`{key}` stands twice in an object")));
            }
        }
        Ok(self)
    }
}

#[test]
fn a_key_that_stands_twice_is_found_however_deep() {
    #[derive(Serialize)]
    struct Inner {
        max_ns: i64,
    }
    #[derive(Serialize)]
    struct Outer {
        #[serde(flatten)]
        inner: Inner,
        max_ns: Option<f64>,
    }
    let outer = Outer { inner: Inner { max_ns: -1 }, max_ns: Some(0.5) };
    assert_eq!(fault(&(&outer.inner, "x", true, 1u8, outer.max_ns, ())), None);
    let found = fault(&[vec![("a", &outer)]]).expect("it is found");
    assert!(found.contains("`max_ns` stands twice"), "{found}");
}

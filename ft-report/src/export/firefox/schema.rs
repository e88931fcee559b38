//! What the markers have, and how the viewer shows it.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use ft_trace::tables::Part;

/// Categories, with colours that the viewer knows; the first is what has no other.
const CATEGORIES: [(&str, &str); 9] = [
    ("Other", "grey"),
    ("Running", "green"),
    ("Preempted", "red"),
    ("Waiting for a CPU", "orange"),
    ("Blocked", "lightblue"),
    ("Interrupt", "purple"),
    ("Unexplained", "darkgrey"),
    ("Idle", "transparent"),
    ("Lock", "yellow"),
];

/// A category, by its place in [`CATEGORIES`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Category {
    Other,
    Running,
    Preempted,
    Dispatch,
    Blocked,
    Interrupt,
    Unexplained,
    Idle,
    Lock,
}

impl From<Part> for Category {
    fn from(part: Part) -> Category {
        match part {
            Part::Running => Category::Running,
            Part::Preempted => Category::Preempted,
            Part::Dispatch => Category::Dispatch,
            Part::Blocked => Category::Blocked,
            Part::Hardirq | Part::Softirq | Part::Vector => Category::Interrupt,
            Part::Unexplained => Category::Unexplained,
        }
    }
}

pub(super) fn categories() -> Value {
    let category =
        |(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    CATEGORIES.map(category).into()
}

/// A length, ns; the viewer wants ms.
pub(super) struct Length(pub(super) i64);

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

/// How a field is shown.
trait Shown {
    const FORMAT: &'static str;
}

impl Shown for &str {
    const FORMAT: &'static str = "string";
}

impl Shown for i32 {
    const FORMAT: &'static str = "integer";
}

impl Shown for i64 {
    const FORMAT: &'static str = "integer";
}

impl Shown for Length {
    const FORMAT: &'static str = "duration";
}

/// The payload of a marker.
pub(super) trait Marker: Serialize {
    const CATEGORY: Category;
    fn schema() -> Value;
}

macro_rules! markers {
    ($($(#[doc = $about:literal])* $marker:ident: $category:ident, $label:literal {
        $($field:ident: $ty:ty as $name:literal,)*
    })*) => {
        $(
            $(#[doc = $about])*
            #[derive(Serialize)]
            #[serde(tag = "type")]
            pub(super) struct $marker<'a> {
                $(pub(super) $field: $ty,)*
            }

            impl<'a> Marker for $marker<'a> {
                const CATEGORY: Category = Category::$category;

                fn schema() -> Value {
                    json!({
                        "name": stringify!($marker),
                        "display": ["marker-chart", "marker-table"],
                        "chartLabel": "{marker.name}",
                        "tooltipLabel": concat!(stringify!($marker), ": {marker.name}"),
                        "tableLabel": $label,
                        "description": concat!($($about),*).trim(),
                        "fields": [$({
                            "key": stringify!($field),
                            "label": $name,
                            "format": <$ty as Shown>::FORMAT,
                            "searchable": true,
                        }),*],
                    })
                }
            }
        )*

        /// `markerSchema`.
        pub(super) fn schemas() -> Value {
            json!([$($marker::schema()),*])
        }
    };
}

markers! {
    /// A lock was held.
    Hold: Lock, "{marker.name} held at {marker.data.place}, {marker.data.mark}" {
        lock: &'a str as "Lock",
        kind: &'a str as "Kind",
        place: &'a str as "Acquired at",
        depth: i32 as "Locks held already",
        waited: Length as "Waited before",
        preempted: Length as "Preempted meanwhile",
        blocked: Length as "Blocked meanwhile",
        preemptor: &'a str as "Mostly by",
        mark: &'a str as "Mark",
    }
    /// A lock was waited for.
    Wait: Blocked, "{marker.name} awaited, held by {marker.data.holder} at {marker.data.holder_place}, {marker.data.mark}" {
        lock: &'a str as "Lock",
        kind: &'a str as "Kind",
        place: &'a str as "Waited at",
        holder: &'a str as "Longest holder",
        holder_place: &'a str as "Acquired at",
        outcome: &'a str as "Ended",
        mark: &'a str as "Mark",
    }
    /// A thread was woken and waited for a CPU.
    Dispatch: Dispatch, "woken where {marker.data.waker} was current, behind {marker.data.behind}, {marker.data.mark}" {
        waker: &'a str as "Current where it was woken",
        behind: &'a str as "Longest on the CPU meanwhile",
        cpu: i32 as "CPU",
        migrated: &'a str as "Moved to another CPU",
        mark: &'a str as "Mark",
    }
    /// A piece of work that the application marked.
    Scope: Running, "{marker.name}, {marker.data.mark}" {
        preempted: Length as "Preempted meanwhile",
        blocked: Length as "Blocked meanwhile",
        mark: &'a str as "Mark",
    }
    /// A polling thread did not run.
    Gap: Preempted, "{marker.data.cause} by {marker.data.culprit}, {marker.data.mark}" {
        cause: &'a str as "Cause",
        culprit: &'a str as "Culprit",
        inferred: &'a str as "Inferred without the kernel",
        mark: &'a str as "Mark",
    }
    /// An event of the application, or of the life of a thread.
    Event: Other, "{marker.data.text}" {
        text: &'a str as "Text",
    }
    /// A run of an interrupt handler.
    Interrupt: Interrupt, "{marker.name}" {
        kind: &'a str as "Kind",
    }
    /// Events or records were lost.
    Loss: Unexplained, "{marker.data.count} of {marker.data.what}" {
        what: &'a str as "What",
        count: i64 as "Count",
        thread: &'a str as "Thread",
    }
}

//! What others wrote, as text of a page: no name may become markup, nor change how its neighbours are read.

use std::fmt::{self, Write};

use crate::render::columns::clean;

/// Text as it stands between tags and in attributes with double quotes. Control characters show as `?`, as in the text
/// of a terminal.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in clean(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A name: it stands alone, so that one that is written from right to left turns nothing around but itself.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<bdi>{}</bdi>", Escaped(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_ends_what_it_stands_in() {
        let name = "</script><img src=x onerror='a(\"&\")'>\0\n\u{202e}";
        let escaped =
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a(&quot;&amp;&quot;)&#39;&gt;??\\u{202e}";
        assert_eq!(Escaped(name).to_string(), escaped);
        assert_eq!(Name("\u{202e}a").to_string(), "<bdi>\\u{202e}a</bdi>");
    }
}

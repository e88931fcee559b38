//! The colours of the parts of a thread's time: one for each, in the figures and in the timeline.

use std::fmt::Write;

use ft_trace::tables::Part;

/// On light paper and on dark, `0xRRGGBB`; in the order of [`Part::ALL`].
const COLORS: [(u32, u32); Part::ALL.len()] = [
    (0x4c_b87a, 0x3f_ae70),
    (0xef_5b52, 0xf0_625a),
    (0xf5_a93b, 0xed_a53c),
    (0xdd_e2e8, 0x33_3b45),
    (0xb5_9b00, 0xc2_aa1c),
    (0xd8_c018, 0xd5_c13a),
    (0xef_e07a, 0xe6_d983),
    (0x8f_98a3, 0x79_828d),
];

/// Red, green and blue of a part on light paper.
pub(crate) fn light(part: Part) -> [u8; 3] {
    let [_, rgb @ ..] = COLORS[part as usize].0.to_be_bytes();
    rgb
}

/// The style sheet's names of them, `--part-running` and so on, for light paper and for dark.
///
/// A figure is drawn in the light ones and printed so; on a dark screen a rule says for each what it becomes.
pub(crate) fn style() -> String {
    let (mut names, mut dark_names, mut rules) = (String::new(), String::new(), String::new());
    for (part, (light, dark)) in Part::ALL.iter().map(|part| part.word()).zip(COLORS) {
        // A text has room for more.
        let _ = write!(names, " --part-{part}: #{light:06x};");
        let _ = write!(dark_names, " --part-{part}: #{dark:06x};");
        let _ = writeln!(rules, "  svg [fill=\"#{light:06X}\"] {{ fill: #{dark:06x}; }}");
    }
    format!(
        ":root {{{names} }}\n@media screen and (prefers-color-scheme: dark) {{\n  :root {{{dark_names} }}\n{rules}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_finds_what_a_figure_draws() {
        let [r, g, b] = light(Part::Preempted);
        let rule = format!("svg [fill=\"#{r:02X}{g:02X}{b:02X}\"] {{ fill: #f0625a; }}");
        assert!(style().contains(&rule), "{}", style());
    }

    #[test]
    fn no_two_parts_look_alike() {
        let all: std::collections::BTreeSet<u32> =
            COLORS.iter().flat_map(|(light, dark)| [*light, *dark]).collect();
        assert_eq!(all.len(), 2 * COLORS.len());
    }
}

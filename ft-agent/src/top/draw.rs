//! What `ft-agent top` looks like.
//!
//! Names were written by the recorded program: whatever of them is no printable character shows as `?`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::{Late, LockRow, Preempted, View};
use ft_analysis::Mark;
use ft_report::render::columns::clean;
use ft_report::units::{short, short_bytes, short_ns};

/// What is known beside the figures.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// What is recorded, in a few words.
    pub subject: String,
    /// It shows what was when it was frozen.
    pub is_frozen: bool,
    /// The newest message for the user.
    pub message: String,
    /// There is a flight recorder that can be asked for a snapshot.
    pub has_snapshots: bool,
    /// Colours are wanted.
    pub is_coloured: bool,
}

/// Lines above the tables, and below them.
const HEAD: u16 = 3;
const FOOT: u16 = 1;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, view: &View, screen: &Screen) {
    let rows = [Constraint::Length(HEAD), Constraint::Min(0), Constraint::Length(FOOT)];
    let [head, body, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Paragraph::new(screen.head(view, head.width)), head);
    let rows = [view.locks.len(), view.preempted.len(), view.late.len()];
    let tables = heights(body.height, rows).map(Constraint::Length);
    let [locks, preempted, late] = Layout::vertical(tables).areas(body);
    let covered = view.covered_ns.max(1) as f64;
    screen.table(frame, locks, "Locks by waiting time", lock_columns(covered), &view.locks);
    let title = "Holders that were preempted, or woken and without a CPU";
    screen.table(frame, preempted, title, preempted_columns(), &view.preempted);
    screen.table(frame, late, "Worst wake-ups", late_columns(), &view.late);
    frame.render_widget(Paragraph::new(screen.foot(view)), foot);
}

/// Of the room, half is for the first table and a quarter for each of the others.
const SHARES: [u16; 3] = [2, 1, 1];

/// How high tables with so many rows are: what one does not need is for the others.
fn heights(room: u16, rows: [usize; 3]) -> [u16; 3] {
    // A title, the columns' titles, and a blank line below.
    let wanted = rows.map(|rows| u16::try_from(rows + 3).unwrap_or(u16::MAX));
    let mut heights = [None; 3];
    loop {
        let open = || (0..3).filter(|&i| heights[i].is_none());
        let left = room - heights.iter().flatten().sum::<u16>();
        let shares = open().map(|i| SHARES[i]).sum::<u16>().max(1);
        let share = |i: usize| (u32::from(left) * u32::from(SHARES[i]) / u32::from(shares)) as u16;
        let Some(small) = open().find(|&i| wanted[i] <= share(i)) else {
            return [0, 1, 2].map(|i| heights[i].unwrap_or(share(i)));
        };
        heights[small] = Some(wanted[small]);
    }
}

/// Characters of the names in the first column: as many as they have from the first to the second; on a screen that is too
/// small, at least the third.
const NAMES: (usize, usize, u16) = (20, 48, 8);

/// A column: title, width (0: that of names), from which width of the screen on it is there, and its cells.
struct Column<'a, T> {
    title: &'static str,
    width: u16,
    from: u16,
    cell: Box<dyn Fn(&T) -> String + 'a>,
}

fn column<'a, T>(
    title: &'static str,
    width: u16,
    from: u16,
    cell: impl Fn(&T) -> String + 'a,
) -> Column<'a, T> {
    Column { title, width, from, cell: Box::new(cell) }
}

fn ns(ns: i64) -> String {
    short_ns(ns as f64)
}

fn marked(ns_: i64, mark: Mark) -> String {
    if mark == Mark::Exact { ns(ns_) } else { ns(ns_) + "*" }
}

fn name(name: Option<&str>) -> String {
    clean(name.unwrap_or("-"))
}

/// Without its directories.
fn place(place: Option<&str>) -> String {
    clean(place.map_or("-", |place| place.rsplit('/').next().unwrap_or(place)))
}

/// A lock; what is held to read and to write has two rows.
fn lock(l: &LockRow) -> String {
    match l.kind.strip_prefix("rwlock-") {
        Some(how) => format!("{} ({})", clean(&l.lock), clean(how)),
        None => clean(&l.lock),
    }
}

fn lock_columns(covered_ns: f64) -> Vec<Column<'static, LockRow>> {
    let second = move |ns_: i64| short_ns(ns_ as f64 * 1e9 / covered_ns);
    vec![
        column("lock", 0, 0, lock),
        column("waited/s", 9, 0, move |l: &LockRow| second(l.waited_ns)),
        column("waits", 7, 60, |l: &LockRow| short(l.waits as f64)),
        column("longest", 9, 0, |l: &LockRow| ns(l.longest_wait_ns)),
        column("held/s", 9, 70, move |l: &LockRow| second(l.held_ns)),
        column("holds", 7, 90, |l: &LockRow| short(l.holds as f64)),
        column("longest hold", 12, 90, |l: &LockRow| ns(l.longest_hold_ns)),
        column("behind", 16, 80, |l: &LockRow| name(l.behind.as_deref())),
        column("at", 24, 120, |l: &LockRow| place(l.behind_place.as_deref())),
        column("kind", 12, 140, |l: &LockRow| clean(&l.kind)),
        column("pid", 8, 150, |l: &LockRow| l.pid.to_string()),
    ]
}

fn preempted_columns() -> Vec<Column<'static, Preempted>> {
    vec![
        column("lock", 0, 0, |p: &Preempted| clean(&p.lock)),
        column("off CPU", 9, 0, |p: &Preempted| marked(p.dur_ns, p.mark)),
        column("cause", 9, 50, |p: &Preempted| p.cause.word().to_owned()),
        column("behind", 16, 0, |p: &Preempted| name(p.by.as_deref())),
        column("holder", 16, 60, |p: &Preempted| clean(&p.holder)),
        column("waiters", 7, 80, |p: &Preempted| p.waiters.to_string()),
        column("delayed", 9, 80, |p: &Preempted| ns(p.delayed_ns)),
        column("acquired at", 24, 110, |p: &Preempted| place(Some(&p.place))),
    ]
}

fn late_columns() -> Vec<Column<'static, Late>> {
    vec![
        column("thread", 0, 0, |l: &Late| clean(&l.thread)),
        column("latency", 9, 0, |l: &Late| marked(l.dur_ns, l.mark)),
        column("behind", 16, 0, |l: &Late| name(l.behind.as_deref())),
        column("cpu", 4, 60, |l: &Late| l.cpu.to_string()),
        column("tid", 8, 70, |l: &Late| l.tid.to_string()),
    ]
}

impl Screen {
    fn style(&self, colour: Color, more: Modifier) -> Style {
        let style = Style::default().add_modifier(more);
        if self.is_coloured { style.fg(colour) } else { style }
    }

    fn head(&self, view: &View, width: u16) -> Vec<Line<'static>> {
        let (state, colour) = match () {
            () if self.is_frozen => ("FROZEN", Color::Cyan),
            () if view.is_over => ("ENDED", Color::Yellow),
            () => ("live", Color::Green),
        };
        let age = short_ns(view.age_ns as f64);
        let subject = cut(&clean(&self.subject), usize::from(width).saturating_sub(30));
        let first = Line::from(vec![
            Span::styled(
                format!(" {state} "),
                self.style(colour, Modifier::REVERSED | Modifier::BOLD),
            ),
            Span::raw(format!(" ft-agent top  {subject}  {age}")),
        ]);
        let about = if view.skipped { "about " } else { "" };
        let rates = format!(
            "{about}{} events/s  {}/s  ",
            view.events_per_s.map_or("?".into(), short),
            view.bytes_per_s.map_or("?".into(), |bytes| short_bytes(bytes as u64))
        );
        let lost = match (view.is_unread, view.lost) {
            (true, 0) => "losses not all read".into(),
            (true, lost) => format!("at least {} lost", short(lost as f64)),
            (false, lost) => format!("{} lost", short(lost as f64)),
        };
        let lost_style = match view.lost {
            0 => Style::default(),
            _ => self.style(Color::Red, Modifier::BOLD),
        };
        let behind = match view.behind_ns {
            0 => String::new(),
            behind => format!("  {} behind", short_ns(behind as f64)),
        };
        let second =
            Line::from(vec![Span::raw(rates), Span::styled(lost, lost_style), Span::raw(behind)]);
        let share = 100.0 * view.own_share;
        let looked = match (view.covered_ns, view.window_ns, view.kept_bytes) {
            (0, 0, _) => "nothing was looked at yet".into(),
            (0, of, 0) => format!(
                "read nothing of {}, {share:.1} % of a CPU is used up: raise --share",
                short_ns(of as f64)
            ),
            (0, of, kept) => format!(
                "read {} of {}, too little to say who waits: raise --share",
                short_bytes(kept),
                short_ns(of as f64)
            ),
            (covered, of, _) => format!(
                "looked at {} of {} ({}), using {share:.1} % of a CPU",
                short_ns(covered as f64),
                short_ns(of as f64),
                percent(covered as f64 / of as f64)
            ),
        };
        vec![first, second, Line::styled(looked, self.style(Color::DarkGray, Modifier::empty()))]
    }

    fn foot(&self, view: &View) -> Line<'static> {
        if !self.message.is_empty() {
            return Line::styled(clean(&self.message), self.style(Color::Yellow, Modifier::BOLD));
        }
        let freeze = if self.is_frozen { "go on" } else { "freeze" };
        let mut keys = vec![("space", freeze)];
        if self.has_snapshots && !view.is_over {
            keys.push(("s", "snapshot"));
        }
        keys.push(("q", "quit"));
        let key = self.style(Color::Cyan, Modifier::BOLD);
        let spans = keys
            .into_iter()
            .flat_map(|(name, does)| [Span::styled(name, key), Span::raw(format!(" {does}   "))]);
        Line::from(spans.chain([Span::raw("* at least")]).collect::<Vec<_>>())
    }

    fn table<T>(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        title: &'static str,
        columns: Vec<Column<'_, T>>,
        items: &[T],
    ) {
        if area.height < 2 {
            return;
        }
        let [above, area] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
        frame.render_widget(Line::styled(title, self.style(Color::Cyan, Modifier::BOLD)), above);
        let width = area.width;
        let columns: Vec<_> = columns.into_iter().filter(|c| c.from <= width).collect();
        let header = columns.iter().map(|c| c.title);
        let header = Row::new(header).style(Style::default().add_modifier(Modifier::UNDERLINED));
        let most = usize::from(area.height).saturating_sub(1);
        let rows = items.iter().take(most);
        let rows =
            rows.map(|item| Row::new(columns.iter().map(|c| (c.cell)(item)).collect::<Vec<_>>()));
        // The names, as far as there is room beside the figures.
        let others: u16 = columns.iter().skip(1).map(|c| c.width + 1).sum();
        let shown = items.iter().take(most).map(|item| (columns[0].cell)(item).chars().count());
        let names = shown.max().unwrap_or(0).clamp(NAMES.0, NAMES.1) as u16;
        let names = names.min(width.saturating_sub(others)).max(NAMES.2);
        let widths = columns.iter().map(|c| match c.width {
            0 => Constraint::Length(names),
            width => Constraint::Length(width),
        });
        let table = Table::new(rows, widths.collect::<Vec<_>>()).header(header).column_spacing(1);
        frame.render_widget(table, area);
    }
}

/// A share, of which the least is no 0.
fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent >= 1.0 => format!("{percent:.0} %"),
        percent if percent >= 0.05 => format!("{percent:.1} %"),
        _ => "<0.1 %".into(),
    }
}

/// The first `most` characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;

//! Panels with a row for each series.

use maud::{Markup, html};

use super::{
    heading,
    labels::apart,
    pen::{CHARACTER, DIGIT, LINE, Pen, arrow, coloured, number, point, shape, shortened},
};
use crate::{
    distinct,
    page::{
        chart::{Mark, Panel, Point, Series},
        scale::{Span, within_reach},
        unit::PageUnit,
    },
};

/// Room at both sides of the marks.
const SIDE: f64 = 7.0;

/// The thickness of a bar, and of the strip of a row's trials.
const BAR: f64 = 11.0;

/// The height of a row's bar and of what keeps it from the next row.
const BELOW: f64 = BAR + 9.0;

/// The width of the names beside panels, at most, as a share of the drawing.
const NAMES: f64 = 0.2;

/// Least width of a panel beside others.
const LEAST: f64 = 210.0;

/// The distance between panels.
const GAP: f64 = 12.0;

/// The distance between ticks, at least.
const TICK: f64 = 62.0;

/// The place of a panel: its sides, and the height of the text above each bar.
struct Slot {
    left: f64,
    right: f64,
    text: f64,
}

/// Draws panels that belong together: beside each other with the names at the left where there is room, else one
/// below the other with a name above each bar.
pub(super) fn draw(panels: &[Panel], pen: &mut Pen) -> Markup {
    let band = &panels[0].band;
    if !pen.is_wide() {
        let title = |panel: &Panel| match &band[..] {
            "" => panel.title.clone(),
            band => format!("{band}: {}", panel.title),
        };
        return html! { @for panel in panels {
            (heading(&title(panel), pen.take(LINE + 9.0) + 1.0, pen.width))
            (stacked(panel, pen))
        } };
    }
    let series = || panels.iter().flat_map(|panel| &panel.series);
    let rows = distinct(series().map(|own| own.name.as_str()));
    let longest = rows.iter().map(|name| name.chars().count()).max();
    let names = (longest.unwrap_or(0) as f64 * CHARACTER + GAP).min(pen.width * NAMES);
    let room = pen.width - names;
    let beside = ((room / LEAST) as usize).clamp(1, panels.len());
    // Without a last line that is nearly empty.
    let beside = panels.len().div_ceil(panels.len().div_ceil(beside));
    let width = room / beside as f64;
    let mut parts = Vec::new();
    if !band.is_empty() {
        parts.push(heading(band, pen.take(LINE + 6.0) + 1.0, pen.width));
    }
    for line in panels.chunks(beside) {
        let titles = pen.take(LINE + 6.0) + LINE;
        let top = pen.y;
        for (at, panel) in line.iter().enumerate() {
            let left = names + at as f64 * width;
            let slot = Slot {
                left,
                right: left + width - GAP,
                text: LINE,
            };
            pen.y = top;
            let weight = if band.is_empty() { "600" } else { "400" };
            let most = Pen::characters((slot.right - slot.left) * 0.92);
            parts.push(html! {
                text."panel" x=(number(slot.left + SIDE)) y=(number(titles)) font-weight=(weight) { (shortened(&panel.title, most)) }
                (column(panel, &rows, &slot, pen))
            });
        }
        let most = Pen::characters(names - GAP);
        parts.push(html! { @for (at, name) in rows.iter().enumerate() {
            (beside_row(name, most, top + at as f64 * (LINE + BELOW)))
        } });
    }
    html! { @for part in parts { (part) } }
}

/// Draws a name beside its row: in two lines where it is long.
fn beside_row(name: &str, most: usize, top: f64) -> Markup {
    let lines = wrapped(name, most);
    let y = top + LINE + if lines.len() > 1 { -3.0 } else { 4.0 };
    html! {
        @for (at, line) in lines.iter().enumerate() {
            text."row" x="2" y=(number(y + at as f64 * LINE)) { (named(line, most)) }
        }
    }
}

/// Returns a name in one line or two, broken after a comma or a space where that is near enough to the end of the line.
fn wrapped(name: &str, most: usize) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return vec![name.to_owned()];
    }
    let is_break = |at: &usize| letters[*at] == ' ';
    let end = (most / 2..=most).rev().find(is_break).unwrap_or(most);
    let [first, second] =
        [&letters[..end], &letters[end..]].map(|line| line.iter().collect::<String>());
    vec![first, second.trim_start_matches([',', ' ']).to_owned()]
}

/// Returns a name as there is room for it; the whole of one that is shortened is told to who points at it.
fn named(name: &str, most: usize) -> Markup {
    html! {
        (shortened(name, most))
        @if name.chars().count() > most { title { (name) } }
    }
}

/// Draws a panel over the whole width, with a name above each bar.
fn stacked(panel: &Panel, pen: &mut Pen) -> Markup {
    // A value that is alone needs no axis.
    if let [series] = &panel.series[..]
        && let [only] = &series.points[..]
        && only.mark == Mark::BAR
    {
        return single(panel, only, pen);
    }
    let most = Pen::characters(pen.width);
    let name = |series: &Series| match base(series) {
        Some(base) => format!("{} {base}", series.name),
        None => series.name.clone(),
    };
    // Name and value beside each other, or below.
    let fits = |series: &Series| {
        let length = name(series).chars().count() + value(panel, series).chars().count();
        length + 2 <= most
    };
    let is_one = panel.series.iter().all(fits);
    let slot = Slot {
        left: 0.0,
        right: pen.width,
        text: LINE * if is_one { 1.0 } else { 2.0 },
    };
    let top = pen.y;
    let rows: Vec<&str> = panel.series.iter().map(|own| own.name.as_str()).collect();
    let drawn = column(panel, &rows, &slot, pen);
    let height = slot.text + BELOW;
    html! {
        (drawn)
        @for (at, series) in panel.series.iter().enumerate() {
            text."row" x="2" y=(number(top + at as f64 * height + LINE - 2.0)) { (named(&name(series), most)) }
        }
    }
}

/// Returns what a row's value is compared with.
fn base(series: &Series) -> Option<&String> {
    series.points.first()?.name.as_ref()
}

/// Draws the axis and the marks of a panel.
fn column(panel: &Panel, rows: &[&str], slot: &Slot, pen: &mut Pen) -> Markup {
    let height = slot.text + BELOW;
    let top = pen.take(height * rows.len() as f64 + 2.0);
    let numbers = pen.take(LINE + 5.0);
    let places = [slot.left + SIDE, slot.right - SIDE];
    let most = ((places[1] - places[0]) / TICK) as usize;
    let mut x = Span::new(panel.scale, ends(panel).into_iter(), places, most);
    x.begin_at(panel.unit.least());
    let ticks = x.ticks();
    let texts = panel.unit.ticks(ticks);
    let labels = labels(ticks.iter().map(|tick| x.place(*tick)), &texts, slot);
    html! {
        g."grid" stroke="#d0d7de" stroke-width="0.6" {
            @for tick in ticks {
                path."zero"[*tick == 0.0] d={ "M" (number(x.place(*tick))) " " (number(top)) "V" (number(numbers + 2.0)) } {}
            }
        }
        g."tick" fill="#57606a" {
            @for Label { place, anchor, text } in labels {
                text x=(number(place)) y=(number(numbers + LINE)) text-anchor=(anchor) { (text) }
            }
        }
        @for series in &panel.series {
            @let at = rows.iter().position(|row| *row == series.name).unwrap_or(0);
            (row(panel, series, &x, slot, top + at as f64 * height))
        }
    }
}

/// A text at a tick.
struct Label<'a> {
    place: f64,
    anchor: &'static str,
    text: &'a str,
}

/// Returns the texts at ticks: the first and the last stay within the panel, and those that would cover them or one
/// another are left out.
fn labels<'a>(
    places: impl Iterator<Item = f64>,
    texts: &'a [String],
    slot: &Slot,
) -> Vec<Label<'a>> {
    let span = |(place, text): (f64, &String)| {
        // Signs of percentages are wide.
        let width = (text.chars().count() as f64 + 0.5) * DIGIT;
        let left = (place - width / 2.0).min(slot.right - width).max(slot.left);
        [left, left + width]
    };
    let spans: Vec<[f64; 2]> = places.zip(texts).map(span).collect();
    let label = |at: usize| {
        let [left, right] = spans[at];
        let (anchor, place) = match at {
            0 => ("start", left + 1.0),
            at if at + 1 == texts.len() => ("end", right - 1.0),
            _ => ("middle", f64::midpoint(left, right)),
        };
        Label {
            place,
            anchor,
            text: &texts[at],
        }
    };
    apart(&spans).into_iter().map(label).collect()
}

/// Returns the values that the axis has room for.
fn ends(panel: &Panel) -> Vec<f64> {
    let (mut marks, mut ends) = (Vec::new(), Vec::new());
    for point in panel.series.iter().flat_map(|series| &series.points) {
        let clamped = |end: f64| end.clamp(panel.unit.least(), point.most);
        let from = match point.mark {
            Mark::Bar { from, .. } => from,
            _ => 0.0,
        };
        if from != 0.0 || point.mark == Mark::BAR {
            marks.push(clamped(from));
        }
        marks.push(clamped(from + point.at));
        let unbounded = |end: &f64| *end < point.most;
        ends.extend(
            point
                .range
                .into_iter()
                .flatten()
                .filter(unbounded)
                .map(clamped),
        );
    }
    let within = within_reach(panel.scale, &marks, &ends);
    marks.extend(within);
    marks
}

/// Draws a value that is alone, with its interval.
fn single(panel: &Panel, only: &Point, pen: &mut Pen) -> Markup {
    let series = &panel.series[0];
    let y = pen.take(LINE + 4.0) + LINE / 2.0;
    let mark = shape(series.colour, false, 8.0, y, 3.0);
    html! {
        (coloured(series.colour, &html! {
            g stroke="none" { (point(panel, &series.name, &only.x.to_string(), only, &mark)) }
        }))
        text."value" x="18" y=(number(y + 4.0)) { (panel.shown(only)) }
    }
}

/// Draws a row's value and marks.
fn row(panel: &Panel, series: &Series, x: &Span, slot: &Slot, top: f64) -> Markup {
    let bar = top + slot.text + 1.0;
    let trials = series
        .points
        .iter()
        .filter(|point| point.mark == Mark::Dot)
        .count();
    let is_wide = slot.left > 0.0;
    let value = value(panel, series);
    let room = Pen::characters(slot.right - slot.left).saturating_sub(value.chars().count() + 2);
    let base = base(series).filter(|base| is_wide && base.chars().count() <= room);
    // Trials lie in the strip from the first above to the last below.
    let share = |at: usize| {
        let before = series.points[..at]
            .iter()
            .filter(|point| point.mark == Mark::Dot);
        (before.count() as f64 + 0.5) / trials.max(1) as f64
    };
    html! {
        text."value" x=(number(slot.right - 2.0)) y=(number(top + slot.text - 3.0)) text-anchor="end" { (value) }
        @if let Some(base) = base {
            text."axis-title" x=(number(slot.left + SIDE)) y=(number(top + slot.text - 3.0)) { (base) }
        }
        @for (at, each) in series.points.iter().enumerate() {
            @let colour = match each.mark { Mark::Bar { colour: Some(colour), .. } => colour, _ => series.colour };
            (coloured(colour, &mark(panel, series, each, x, [bar, share(at)])))
        }
    }
}

/// The number at the end of a row: its first, or the whole of which its bars are the parts, if that has one.
fn value(panel: &Panel, series: &Series) -> String {
    let is_part = |point: &&Point| {
        matches!(
            point.mark,
            Mark::Bar {
                colour: Some(_),
                ..
            }
        )
    };
    let parts = || series.points.iter().filter(is_part);
    match series.points.first() {
        // The whole is 100 %.
        _ if panel.unit == PageUnit::CpuShare => String::new(),
        Some(first) if parts().count() < 2 => panel.value(first),
        _ => panel.unit.shown(parts().map(|part| part.at).sum()),
    }
}

/// Draws a mark in a strip that begins at `top`; a trial lies at a share of its height.
fn mark(panel: &Panel, series: &Series, each: &Point, x: &Span, [top, share]: [f64; 2]) -> Markup {
    let drawn = |path: &str| point(panel, &series.name, &each.x.to_string(), each, path);
    let middle = top + BAR / 2.0;
    match each.mark {
        Mark::Bar { from, .. } => {
            let [from, end] = [from, from + each.at].map(|end| number(x.place(end)));
            let bar = format!("M{from} {}H{end}v{BAR}H{from}z", number(top));
            html! {
                g stroke="none" fill-opacity="0.8" { (drawn(&bar)) }
                (whisker(x, each, middle))
            }
        }
        Mark::Mean => {
            let at = x.place(each.at);
            let line = format!(
                "M{} {}h2v{}h-2z",
                number(at - 1.0),
                number(top - 2.0),
                number(BAR + 4.0)
            );
            html! {
                (interval(x, each, top))
                g stroke="none" { (drawn(&line)) }
            }
        }
        _ => {
            let is_trial = series.points.len() > 1;
            let y = if is_trial { top + share * BAR } else { middle };
            let dot = shape(
                series.colour,
                false,
                x.place(each.at),
                y,
                if is_trial { 2.0 } else { 3.0 },
            );
            html! {
                (whisker(x, each, middle))
                g stroke="none" fill-opacity=(if is_trial { "0.65" } else { "1" }) { (drawn(&dot)) }
            }
        }
    }
}

/// Draws an interval as a strip behind the trials.
fn interval(x: &Span, each: &Point, top: f64) -> Markup {
    let Some([low, high]) = each.range.map(|range| range.map(|end| x.place(end))) else {
        return html! {};
    };
    html! {
        rect."interval" x=(number(low)) y=(number(top - 2.0)) width=(number(high - low)) height=(number(BAR + 4.0))
            stroke="none" fill-opacity="0.18" {}
        (whisker(x, each, top + BAR / 2.0))
    }
}

/// Draws an interval as a line; an end beyond the axis is an arrow.
fn whisker(x: &Span, each: &Point, middle: f64) -> Markup {
    let Some(range) = each.range else {
        return html! {};
    };
    let places = range.map(|end| x.place(end));
    let heads = range
        .iter()
        .zip(places)
        .zip([-1.0, 1.0])
        .map(|((end, place), right)| {
            if x.is_beyond(*end) || *end >= each.most {
                arrow([place, middle], [right, 0.0])
            } else {
                format!(
                    "M{} {}v{}",
                    number(place),
                    number(middle - 3.5),
                    number(BAR - 4.0)
                )
            }
        });
    let heads: String = heads.collect();
    let [low, high] = places.map(number);
    html! {
        path."whisker" d={ "M" (low) " " (number(middle)) "H" (high) (heads) } fill="none" stroke-width="1.2" {}
    }
}

#[cfg(test)]
mod tests {
    use netping_results::metric;

    use super::{
        super::pen::{NARROW, WIDE},
        *,
    };

    fn panel(title: &str, ranges: &[[f64; 2]]) -> Panel {
        let row = |(at, range): (usize, &[f64; 2])| {
            let point = Point::new("base", 0.02).with_range(Some(*range));
            Series::new(format!("row {at}"), 0, vec![point])
        };
        let rows = ranges.iter().enumerate().map(row).collect();
        Panel::rows(title, PageUnit::Change(&metric::P50), rows)
    }

    fn drawn(panels: &[Panel], width: f64) -> String {
        draw(panels, &mut Pen { y: 0.0, width }).into_string()
    }

    #[test]
    fn an_interval_that_goes_on_beyond_the_axis_ends_in_an_arrow() {
        let heads = |ranges: &[[f64; 2]]| {
            let svg = drawn(&[panel("change", ranges)], NARROW);
            let whiskers = svg.split("class=\"whisker\" d=\"").skip(1);
            let paths =
                whiskers.map(|rest| rest.split('"').next().unwrap().matches('L').count() / 2);
            paths.collect::<Vec<_>>()
        };
        assert_eq!(heads(&[[0.01, 0.03], [0.0, 0.04]]), [0, 0]);
        assert_eq!(heads(&[[0.01, 0.03], [0.0, 0.04], [-0.9, 1e9]]), [0, 0, 2]);
    }

    #[test]
    fn a_long_name_takes_two_lines() {
        let lines = |name: &str| wrapped(name, 20);
        assert_eq!(lines("tcp://h:1, 64 callers"), ["tcp://h:1, 64", "callers"]);
        assert_eq!(
            lines("grpc://server-1:8005, 1 caller"),
            ["grpc://server-1:8005", "1 caller"]
        );
        assert_eq!(lines("tcp://server-1:8004"), ["tcp://server-1:8004"]);
        assert_eq!(
            lines("tcp://a-host-with-a-long-name:8004").concat(),
            "tcp://a-host-with-a-long-name:8004"
        );
    }

    #[test]
    fn panels_stand_beside_each_other_where_there_is_room_and_name_their_rows_once() {
        let panels = ["one", "two"].map(|title| panel(title, &[[0.0, 0.1]; 3]));
        let places = |width| {
            let svg = drawn(&panels, width);
            let names = svg.matches(">row 0</text>").count();
            let titles = svg.split("class=\"panel\"").skip(1);
            let y = |rest: &str| {
                rest.split("y=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .to_owned()
            };
            (names, distinct(titles.map(y)).len())
        };
        assert_eq!(places(WIDE), (1, 1));
        assert_eq!(places(NARROW), (2, 2));
    }
}

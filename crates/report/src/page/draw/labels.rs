//! Names that stand at points, none over another.

use super::pen::{DIGIT, LINE};

/// The height of a line of letters.
const HEIGHT: f64 = LINE - 3.0;

/// A box: left, top, right, bottom.
type Area = [f64; 4];

/// The place of a name: where it begins, and its baseline.
pub(super) type Place = [f64; 2];

/// The places on a plane that are taken, and its ends.
pub(super) struct Labels {
    within: Area,
    taken: Vec<Area>,
}

impl Labels {
    pub(super) fn new(within: Area) -> Self {
        let taken = Vec::new();
        Self { within, taken }
    }

    /// Keeps names away from a mark.
    pub(super) fn avoid(&mut self, [x, y]: [f64; 2], radius: f64) {
        self.taken
            .push([x - radius, y - radius, x + radius, y + radius]);
    }

    /// Returns a free place for a name above, below or beside a mark; `None` where there is none.
    pub(super) fn place(&mut self, name: &str, [x, y]: [f64; 2], radius: f64) -> Option<Place> {
        let width = name.chars().count() as f64 * DIGIT;
        let (beside, away) = (radius + 3.0, radius + 2.0);
        // A line that rises to the right leaves the upper left and the lower right free.
        let (near, middle) = (radius * 0.5, y - HEIGHT / 2.0);
        let corners = [
            [x - near - width, y - away - HEIGHT],
            [x + near, y + away],
            [x - width / 2.0, y - away - HEIGHT],
            [x - width / 2.0, y + away],
            [x + beside, middle],
            [x - beside - width, middle],
            [x + near, y - away - HEIGHT],
            [x - near - width, y + away],
        ];
        let areas = corners.map(|[left, top]| [left, top, left + width, top + HEIGHT]);
        let area = areas.into_iter().find(|area| self.is_free(area))?;
        self.taken.push(area);
        Some([area[0], area[3] - 3.0])
    }

    fn is_free(&self, [left, top, right, bottom]: &Area) -> bool {
        let within = self.within;
        let overlaps = |other: &Area| {
            *left < other[2] && other[0] < *right && *top < other[3] && other[1] < *bottom
        };
        *left >= within[0]
            && *top >= within[1]
            && *right <= within[2]
            && *bottom <= within[3]
            && !self.taken.iter().any(overlaps)
    }
}

/// Returns the places of those spans that cover no other: the first and the last, and of the others as many as there is
/// room for.
pub(super) fn apart(spans: &[[f64; 2]]) -> Vec<usize> {
    let last = spans.len().saturating_sub(1);
    let mut kept: Vec<usize> = Vec::new();
    for at in [0, last].into_iter().chain(0..spans.len()) {
        let covers = |other: &usize| {
            let ([left, right], [from, until]) = (spans[at], spans[*other]);
            left < until + 2.0 && from < right + 2.0
        };
        if at < spans.len() && !kept.iter().any(covers) {
            kept.push(at);
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_an_axis_keep_their_numbers() {
        let spans = [[0.0, 40.0], [30.0, 70.0], [60.0, 100.0], [90.0, 130.0]];
        assert_eq!(apart(&spans), [0, 3]);
        assert_eq!(apart(&spans[..3]), [0, 2]);
        assert_eq!(apart(&spans[..1]), [0]);
        assert!(apart(&[]).is_empty());
    }

    #[test]
    fn a_name_gives_way_to_marks_and_other_names_and_stays_out_where_there_is_no_room() {
        let mut labels = Labels::new([0.0, 0.0, 100.0, 60.0]);
        labels.avoid([50.0, 30.0], 3.0);
        let first = labels.place("1", [50.0, 30.0], 3.0).unwrap();
        let second = labels.place("2", [50.0, 30.0], 3.0).unwrap();
        assert!(first[1] < 30.0 && second[1] > 30.0, "{first:?} {second:?}");
        assert_eq!(
            labels.place("a name of 20 letters", [50.0, 30.0], 3.0),
            None
        );
        let kept = (0..50).filter(|_| labels.place("3", [50.0, 30.0], 3.0).is_some());
        assert!(kept.count() < 8);
    }
}

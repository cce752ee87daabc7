//! The pairing of two runs' measurements.

use netping_measure::status::Status;

use crate::{
    bulk::{BulkStep, SERVERS_CHOICE},
    format::{plural, thousands},
    run::Step,
};

/// A measurement in a result file.
pub(super) trait Entry {
    /// The server's URL.
    fn target(&self) -> &str;
    /// A name that says more than the URL.
    fn label(&self) -> Option<&str>;
    /// The settings that make it this measurement and no other, as people read them.
    fn settings(&self) -> String;
    /// Those of the settings that tell it from others of its target, mostly.
    fn load(&self) -> String;
    /// Returns true if it was completed: an interrupted one is not a trial like the others.
    fn is_whole(&self) -> bool;
}

impl Entry for Step {
    fn target(&self) -> &str {
        &self.target
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    fn settings(&self) -> String {
        let of = &self.settings;
        let arrivals = match of.planned_rate {
            None => format!("{} loop", of.arrivals),
            Some(rate) => format!("{rate} req/s, {} arrivals", of.arrivals),
        };
        let mut parts = vec![
            arrivals,
            plural(of.callers as u64, "caller"),
            plural(of.connections as u64, "connection"),
            plural(of.payload_bytes as u64, "byte"),
            of.client.clone(),
        ];
        let (message, response) = (of.message.as_ref(), of.response_bytes);
        parts.extend(message.map(|message| format!("message {message}")));
        // Files from before there were others have none.
        let method = of.http_method.as_ref().filter(|method| *method != "GET");
        parts.extend(method.cloned());
        parts.extend(of.data_hash.as_ref().map(|hash| format!("data {hash}")));
        parts.extend(
            of.body_order
                .as_ref()
                .map(|order| format!("bodies in {order} order")),
        );
        parts.extend(
            of.deadline_seconds
                .map(|limit| format!("deadline of {limit} s")),
        );
        parts.extend(response.map(|bytes| format!("replies of {bytes} bytes")));
        let each = of.requests_per_connection;
        parts.extend(each.map(|requests| format!("{requests} requests per connection")));
        parts.join(", ")
    }

    fn load(&self) -> String {
        match self.settings.planned_rate {
            Some(rate) => format!("{} req/s planned", thousands(rate)),
            None => plural(self.settings.callers as u64, "caller"),
        }
    }

    fn is_whole(&self) -> bool {
        self.status == Status::Complete
    }
}

impl Entry for BulkStep {
    fn target(&self) -> &str {
        &self.target
    }

    fn label(&self) -> Option<&str> {
        None
    }

    fn settings(&self) -> String {
        let of = &self.settings;
        let mut parts = vec![
            format!("bulk {}", of.direction.name()),
            chosen(of.size_bytes, plural(of.size_bytes, "byte"), "size"),
            chosen(
                of.chunk_bytes,
                format!("chunks of {} bytes", of.chunk_bytes),
                "chunks",
            ),
            plural(of.streams as u64, "stream"),
        ];
        let (window, frame) = (of.window_bytes, of.frame_bytes);
        parts.extend(window.map(|bytes| format!("window of {bytes} bytes")));
        parts.extend(frame.map(|bytes| format!("frame of {bytes} bytes")));
        parts.extend(of.verify.then(|| "verified".to_owned()));
        parts.join(", ")
    }

    fn load(&self) -> String {
        self.settings()
    }

    /// Each of its runs is whole.
    fn is_whole(&self) -> bool {
        true
    }
}

fn chosen(bytes: u64, text: String, what: &str) -> String {
    if bytes == SERVERS_CHOICE {
        format!("the server's own {what}")
    } else {
        text
    }
}

/// One measurement of a run, and how often it was made.
#[derive(Debug)]
pub(super) struct Group<'a, E> {
    label: Option<&'a str>,
    target: &'a str,
    settings: String,
    /// Its trials; there is one at least.
    pub entries: Vec<&'a E>,
}

impl<E> Group<'_, E> {
    /// As people read it.
    pub fn name(&self) -> String {
        format!("{}  {}", self.label.unwrap_or(self.target), self.settings)
    }

    /// Returns its label or target, and its load.
    pub fn short_name(&self) -> String
    where
        E: Entry,
    {
        let name = self.label.unwrap_or(self.target);
        format!("{name}, {}", self.entries[0].load())
    }

    /// Returns true if the other is the same measurement, perhaps of another server.
    fn is_like(&self, other: &Self) -> bool {
        self.label == other.label
            && self.settings == other.settings
            && self.scheme() == other.scheme()
    }

    fn scheme(&self) -> &str {
        self.target.split("://").next().unwrap_or_default()
    }

    fn port(&self) -> &str {
        self.target.rsplit(':').next().unwrap_or_default()
    }
}

/// Returns the measurements of a run that were completed, in their order. A label stands for its
/// target, which may move from trial to trial.
pub(super) fn groups<E: Entry>(entries: &[E]) -> Vec<Group<'_, E>> {
    let mut groups: Vec<Group<'_, E>> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_whole()) {
        let own = Group {
            label: entry.label(),
            target: entry.target(),
            settings: entry.settings(),
            entries: vec![entry],
        };
        let is_target = |target: &str| own.label.is_some() || target == own.target;
        match groups
            .iter_mut()
            .find(|group| group.is_like(&own) && is_target(group.target))
        {
            Some(group) => group.entries.push(entry),
            None => groups.push(own),
        }
    }
    groups
}

/// The measurements of both runs, and of one alone.
pub(super) struct Matched<'a, E> {
    pub pairs: Vec<(Group<'a, E>, Group<'a, E>)>,
    pub only_base: Vec<Group<'a, E>>,
    pub only_new: Vec<Group<'a, E>>,
}

/// A test for two like measurements of one target.
type Likeness<'a, E> = fn(&Group<'a, E>, &Group<'a, E>) -> bool;

/// Pairs like measurements: those of one target first, then those of one port; then the others in
/// their order, where both sides have the same number of them.
pub(super) fn matched<'a, E>(base: Vec<Group<'a, E>>, new: Vec<Group<'a, E>>) -> Matched<'a, E> {
    let mut partners: Vec<Option<usize>> = vec![None; base.len()];
    let mut taken = vec![false; new.len()];
    let ways: [Likeness<'a, E>; 2] = [|a, b| a.target == b.target, |a, b| a.port() == b.port()];
    for is_same in ways {
        for (own, partner) in base.iter().zip(&mut partners) {
            if partner.is_none() {
                *partner = (0..new.len())
                    .find(|&at| !taken[at] && own.is_like(&new[at]) && is_same(own, &new[at]));
                if let Some(at) = *partner {
                    taken[at] = true;
                }
            }
        }
    }
    for own in &base {
        let left: Vec<usize> = (0..base.len())
            .filter(|&at| partners[at].is_none() && base[at].is_like(own))
            .collect();
        let free: Vec<usize> = (0..new.len())
            .filter(|&at| !taken[at] && new[at].is_like(own))
            .collect();
        if left.len() == free.len() {
            for (at, other) in left.into_iter().zip(free) {
                partners[at] = Some(other);
                taken[other] = true;
            }
        }
    }
    let mut new: Vec<Option<Group<'a, E>>> = new.into_iter().map(Some).collect();
    let (mut pairs, mut only_base) = (Vec::new(), Vec::new());
    for (own, partner) in base.into_iter().zip(partners) {
        match partner.and_then(|at| new[at].take()) {
            Some(other) => pairs.push((own, other)),
            None => only_base.push(own),
        }
    }
    Matched {
        pairs,
        only_base,
        only_new: new.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::step;

    fn of(targets: &[&str]) -> Vec<Step> {
        let one = |target: &&str| Step {
            target: (*target).to_owned(),
            ..step(1, |_| vec![1000])
        };
        targets.iter().map(one).collect()
    }

    fn pairs(base: &[&str], new: &[&str]) -> Vec<(String, String)> {
        let (base, new) = (of(base), of(new));
        let matched = matched(groups(&base), groups(&new));
        matched
            .pairs
            .iter()
            .map(|(a, b)| (a.target.to_owned(), b.target.to_owned()))
            .collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn targets_go_together_by_name_then_by_port_then_in_order() {
        let base = ["tcp://a:1", "tcp://a:2"];
        assert_eq!(
            pairs(&base, &["tcp://a:2", "tcp://a:1"]),
            owned(&[("tcp://a:1", "tcp://a:1"), ("tcp://a:2", "tcp://a:2")])
        );
        assert_eq!(
            pairs(&base, &["tcp://b:2"]),
            owned(&[("tcp://a:2", "tcp://b:2")])
        );
        assert_eq!(
            pairs(&base, &["tcp://b:3", "tcp://b:4"]),
            owned(&[("tcp://a:1", "tcp://b:3"), ("tcp://a:2", "tcp://b:4")])
        );
        // Either of the two would match.
        assert!(pairs(&base, &["tcp://b:3"]).is_empty());
        assert!(pairs(&base, &["grpc://a:1", "grpc://a:2"]).is_empty());
    }

    #[test]
    fn trials_are_one_group_and_a_label_stands_for_its_target() {
        let mut steps = of(&["tcp://a:1", "tcp://a:1", "tcp://a:2"]);
        assert_eq!(
            groups(&steps)
                .iter()
                .map(|group| group.entries.len())
                .collect::<Vec<_>>(),
            [2, 1]
        );
        for step in &mut steps {
            step.label = Some("rung".to_owned());
        }
        assert_eq!(groups(&steps).len(), 1);
    }
}

//! The account of a step's connections by TCP or QUIC, in words.

use netping_measure::path::{PathAccount, PathFact};
use netping_results::{
    format::{plural, thousands},
    run::Step,
    time_unit,
};

/// The share of the time with data out from which on a limit of it is told.
const NOTABLE: f64 = 0.5;

/// Returns what there is to say about a step's connections: packets that were lost, with what belongs to them.
pub(crate) fn remark(step: &Step) -> Option<String> {
    let path = step.path.as_ref()?;
    let lost = path.lost().filter(|lost| lost.sum > 0)?;
    let what = if path.total(PathFact::LostPackets).is_some() {
        "lost"
    } else {
        "sent again"
    };
    let mut parts = Vec::new();
    let sent = path.total(PathFact::SentPackets);
    let of = sent.map_or(String::new(), |sent| {
        format!(" of {}", thousands(sent as f64))
    });
    let packets = if lost.sum == 1 { "packet" } else { "packets" };
    let count = thousands(lost.sum as f64);
    let seconds: Vec<_> = (step.intervals.iter())
        .filter_map(|second| second.path)
        .collect();
    let in_seconds = match seconds.len() {
        0 | 1 => String::new(),
        all => {
            let losing = seconds.iter().filter(|own| own.lost_packets > 0).count();
            format!(" in {losing} of {all} s")
        }
    };
    parts.push(format!("{count} {packets}{of} {what}{in_seconds}"));
    if path.connections > 1 {
        parts.push(format!("at most {} on one", thousands(lost.max as f64)));
    }
    parts.extend(
        path.mean(PathFact::SmoothedRttNs)
            .map(|rtt| format!("RTT {}", time_unit::time(rtt))),
    );
    if path.closed > 0 {
        parts.push(format!(
            "{} closed meanwhile, of which nothing is known",
            thousands(path.closed as f64)
        ));
    }
    Some(format!(
        "{}: {}",
        plural(path.connections, "connection"),
        parts.join(", ")
    ))
}

/// Says what held the client's data back, if anything did for most of the time in which it had data out.
pub(crate) fn limit(path: &PathAccount) -> Option<String> {
    let limits = [
        (
            PathFact::ReceiveWindowLimitedNs,
            "the server's receive window",
        ),
        (PathFact::SendBufferLimitedNs, "the client's send buffer"),
    ];
    let shares = limits
        .into_iter()
        .filter_map(|(limit, name)| Some((path.share_of_busy(limit)?, name)));
    let (share, name) = shares.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (share >= NOTABLE).then(|| {
        format!(
            "{name} held data back for {:.0}% of the time in which any was out",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use netping_measure::path::{PathReading, PathSecond};
    use netping_results::fixtures;

    use super::*;

    fn account(readings: &[&[(PathFact, u64)]]) -> PathAccount {
        let of = |own: &&[(PathFact, u64)]| {
            PathReading::of(own.iter().map(|(fact, value)| (*fact, Some(*value))))
        };
        let end = (0..).zip(readings.iter().map(of)).collect();
        PathAccount::between(&[(9, PathReading::default())].into(), &end).unwrap()
    }

    fn said(readings: &[&[(PathFact, u64)]]) -> Option<String> {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.path = Some(account(readings));
        remark(&step)
    }

    #[test]
    fn lost_packets_are_told_with_what_belongs_to_them() {
        let tcp = |resent| {
            [
                (PathFact::SentPackets, 10_000),
                (PathFact::RetransmittedPackets, resent),
                (PathFact::SmoothedRttNs, 150_000),
            ]
        };
        assert_eq!(
            said(&[&tcp(30), &tcp(5)]).unwrap(),
            "2 connections: 35 packets of 20,000 sent again, at most 30 on one, RTT 150 us, \
             1 closed meanwhile, of which nothing is known"
        );
        assert_eq!(said(&[&tcp(0)]), None);
        assert!(
            said(&[&tcp(1)])
                .unwrap()
                .contains(": 1 packet of 10,000 sent again, ")
        );
        let quic = [(PathFact::LostPackets, 3)];
        assert!(
            said(&[&quic])
                .unwrap()
                .starts_with("1 connection: 3 packets lost, 1 closed")
        );
    }

    #[test]
    fn the_seconds_of_lost_packets_are_counted_where_they_are_known() {
        let mut step = fixtures::step(4, |_| vec![1000; 10]);
        step.path = Some(account(&[&[(PathFact::LostPackets, 3)]]));
        let mut said = |lost: &[u64]| {
            for (second, &lost_packets) in step.intervals.iter_mut().zip(lost) {
                second.path = Some(PathSecond {
                    lost_packets,
                    smoothed_rtt_ns: None,
                });
            }
            remark(&step).unwrap()
        };
        assert!(said(&[3]).contains(": 3 packets lost, 1 closed"));
        assert!(said(&[1, 0, 2]).contains(": 3 packets lost in 2 of 3 s, "));
    }

    #[test]
    fn a_limit_is_told_where_it_held_for_most_of_the_time() {
        let said = |window, buffer| {
            limit(&account(&[&[
                (PathFact::BusyNs, 1000),
                (PathFact::ReceiveWindowLimitedNs, window),
                (PathFact::SendBufferLimitedNs, buffer),
            ]]))
        };
        let line =
            "the server's receive window held data back for 50% of the time in which any was out";
        assert_eq!(said(500, 100).as_deref(), Some(line));
        assert_eq!(said(499, 0), None);
        assert!(
            said(0, 800)
                .unwrap()
                .starts_with("the client's send buffer held data back for 80%")
        );
    }
}

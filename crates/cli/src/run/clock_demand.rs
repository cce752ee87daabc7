//! This host's time of day, as a run demands and records it.

use std::time::Duration;

use netping_client::{
    clock_offset,
    error::{ClockError, StartError},
    plan::Destination,
};
use netping_results::run::{ClockOffset, HostClock};
use netping_system::clock_quality::ClockQuality;

/// The demands of a run on this host's time of day.
#[derive(Debug, Clone, Default)]
pub struct ClockDemand {
    /// The server from whose clock the offset is measured.
    pub server: Option<Destination>,
    /// The largest error: from the server's clock, else by the kernel's estimate.
    pub max_error: Option<Duration>,
}

impl ClockDemand {
    /// Returns the state of the clock.
    ///
    /// # Errors
    /// [`StartError::Clock`] if the clock is not as good as demanded, and others if the server does
    /// not tell its time.
    pub fn check(&self) -> Result<HostClock, StartError> {
        let offset = self
            .server
            .as_ref()
            .map(clock_offset::measure)
            .transpose()?;
        let quality = ClockQuality::read();
        if let Some(max) = self.max_error {
            match &offset {
                Some(offset) => check_offset(offset, max)?,
                None => check_quality(quality, max)?,
            }
        }
        Ok(HostClock {
            synchronized: quality.map(|quality| quality.is_synchronized),
            estimated_error_seconds: quality.map(|quality| quality.estimated_error.as_secs_f64()),
            max_error_seconds: quality.map(|quality| quality.max_error.as_secs_f64()),
            offset,
        })
    }
}

/// Rejects a clock that is further from the server's than `max`, or of which that is not known.
pub fn check_offset(offset: &ClockOffset, max: Duration) -> Result<(), ClockError> {
    let uncertainty = offset.uncertainty_ns();
    let worst = offset.offset_ns.unsigned_abs().saturating_add(uncertainty);
    if u128::from(worst) <= max.as_nanos() {
        return Ok(());
    }
    Err(ClockError::Offset {
        server: offset.server.clone(),
        ahead: offset.offset_ns < 0,
        offset: Duration::from_nanos(offset.offset_ns.unsigned_abs()),
        uncertainty: Duration::from_nanos(uncertainty),
        max,
    })
}

/// Rejects a clock that nothing keeps, or not as well as `max`.
fn check_quality(quality: Option<ClockQuality>, max: Duration) -> Result<(), ClockError> {
    match quality {
        Some(quality) if !quality.is_synchronized => Err(ClockError::NotSynchronized),
        Some(quality) if quality.estimated_error > max => Err(ClockError::Estimate {
            error: quality.estimated_error,
            max,
        }),
        Some(_) => Ok(()),
        None => Err(ClockError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_offset_counts_with_its_uncertainty() {
        let offset = |offset_ns, round_trip_ns| ClockOffset {
            server: "tcp://h:1".to_owned(),
            offset_ns,
            round_trip_ns,
        };
        assert_eq!(check_offset(&offset(-900_000, 200_000), MS), Ok(()));
        let error = check_offset(&offset(-900_000, 202_000), MS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this host's clock is 900us ahead of that of tcp://h:1, give or take 101us; --max-clock-error allows 1ms: \
             synchronise both with the same time server (chrony), or allow more"
        );
        let behind = check_offset(&offset(10_000_000, 0), MS).unwrap_err();
        assert!(behind.to_string().contains("10ms behind"), "{behind}");
    }

    #[test]
    fn a_clock_that_nothing_keeps_is_rejected() {
        let quality = |is_synchronized, micros| {
            Some(ClockQuality {
                is_synchronized,
                estimated_error: Duration::from_micros(micros),
                max_error: Duration::from_secs(1),
            })
        };
        assert_eq!(check_quality(quality(true, 1000), MS), Ok(()));
        assert_eq!(
            check_quality(quality(false, 1), MS),
            Err(ClockError::NotSynchronized)
        );
        assert!(matches!(
            check_quality(quality(true, 1001), MS),
            Err(ClockError::Estimate { .. })
        ));
        assert_eq!(check_quality(None, MS), Err(ClockError::Unknown));
    }
}

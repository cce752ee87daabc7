//! The HTTP client that reads and pushes numbers.

use ureq::{
    Agent,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout, time::Duration},
    },
};

/// Returns an HTTP client that resolves names in the thread that calls it. By default it starts a
/// thread for each name, which panics where the system refuses one, and may disturb a measurement.
pub fn http_agent(config: Config) -> Agent {
    Agent::with_parts(config, DefaultConnector::default(), Resolving::default())
}

/// Resolves names without a thread, and so without a time limit of its own.
#[derive(Debug, Default)]
struct Resolving(DefaultResolver);

impl Resolver for Resolving {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let timeout = NextTimeout {
            after: Duration::NotHappening,
            ..timeout
        };
        self.0.resolve(uri, config, timeout)
    }
}

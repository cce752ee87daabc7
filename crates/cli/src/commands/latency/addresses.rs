//! The addresses of a name as targets of their own, except this pod's.

use std::{env, net::IpAddr};

use netping_client::plan::resolve;
use netping_protocol::target::Target;
use url::Host;

use crate::{args::target::NamedTarget, error::require};

/// The targets at all addresses of some names.
#[derive(Debug)]
pub struct Addresses {
    /// A target for each address, except this pod's.
    pub targets: Vec<NamedTarget>,
    /// The reason why no address was left out.
    pub warning: Option<String>,
}

/// Returns each address of each target's name as a target of its own, except the one that the
/// environment variable of this name has.
pub fn every_address(targets: &[NamedTarget], variable: &str) -> anyhow::Result<Addresses> {
    let mut found: Vec<NamedTarget> = Vec::new();
    for target in targets {
        for address in resolve(&target.url)? {
            let (address, url) = (address.ip(), target.url.at(address.ip()));
            // Each address is a target of its own.
            let name = target.name.as_ref();
            let name = name.map(|name| format!("{name} {address}"));
            if found.iter().all(|own| own.url != url) {
                found.push(NamedTarget { name, url });
            }
        }
    }
    let found = others(found, variable, env::var(variable).ok().as_deref());
    require(
        !found.targets.is_empty(),
        format!("the names resolve only to this pod's address (${variable})"),
    )?;
    Ok(found)
}

/// Leaves out the address `own`, which the variable has.
fn others(mut targets: Vec<NamedTarget>, variable: &str, own: Option<&str>) -> Addresses {
    let all = targets.len();
    let address: Option<IpAddr> = own.and_then(|own| own.parse().ok());
    targets.retain(|own| address.is_none() || address_of(&own.url) != address);
    let reason = match (own, address) {
        (None, _) => Some("is not set".to_owned()),
        (Some(own), None) => Some(format!("is '{own}', which is no address")),
        (Some(own), _) if targets.len() == all => {
            Some(format!("is {own}, which is none of the addresses"))
        }
        _ => None,
    };
    let warning = reason.map(|reason| {
        format!(
            "warning: ${variable} {reason}: --all-addresses leaves none out, and this pod's own may be among \
             them; set the variable, or name another with --pod-ip-env"
        )
    });
    Addresses { targets, warning }
}

fn address_of(target: &Target) -> Option<IpAddr> {
    match target.host {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_pods_address_is_left_out_and_its_lack_is_told() {
        let found = |own: Option<&str>| {
            let all = ["tcp://10.0.0.1:8004", "tcp://[fd00::2]:8004"];
            let targets = all.iter().map(|url| url.parse().unwrap()).collect();
            let others = others(targets, "OWN", own);
            let hosts = others.targets.iter().map(|own| own.url.host.to_string());
            (hosts.collect::<Vec<_>>(), others.warning)
        };
        assert_eq!(
            found(Some("10.0.0.1")),
            (vec!["[fd00::2]".to_owned()], None)
        );
        assert_eq!(found(Some("fd00::2")), (vec!["10.0.0.1".to_owned()], None));
        for (own, reason) in [
            (None, "$OWN is not set:"),
            (
                Some("10.0.0.9"),
                "$OWN is 10.0.0.9, which is none of the addresses:",
            ),
            (Some("pod"), "$OWN is 'pod', which is no address:"),
        ] {
            let (hosts, warning) = found(own);
            assert_eq!(hosts.len(), 2, "{own:?}");
            let warning = warning.unwrap();
            assert!(warning.contains(reason), "{warning}");
        }
    }
}

//! The CPUs of client and servers, which share a machine.

use netping_system::cores;

/// The CPUs of both sides; empty: any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    pub client: Vec<usize>,
    pub servers: Vec<usize>,
    /// A sentence about them.
    pub sentence: String,
}

impl Sides {
    /// Takes these CPUs.
    pub fn given(client: Vec<usize>, servers: Vec<usize>) -> Self {
        let sentence = pinned(&client, &servers);
        Self {
            client,
            servers,
            sentence,
        }
    }

    /// Leaves the choice to the scheduler.
    pub fn unpinned() -> Self {
        Self {
            client: Vec::new(),
            servers: Vec::new(),
            sentence: "Client and servers run on any CPU (--no-pin): times depend on where."
                .to_owned(),
        }
    }

    /// Splits the CPUs of this process in two halves. The CPUs of each core, the second list of
    /// `cores`, stay together where there is more than one core.
    pub fn split(cores: &[Vec<usize>]) -> Self {
        let halve = |all: &[Vec<usize>]| {
            let (client, servers) = all.split_at(all.len() / 2);
            [client.concat(), servers.concat()]
        };
        let cpus: Vec<Vec<usize>> = cores.concat().into_iter().map(|cpu| vec![cpu]).collect();
        match (cores, &cpus[..]) {
            ([_, _, ..], _) => {
                let [client, servers] = halve(cores);
                Self::given(client, servers)
            }
            (_, [_, _, ..]) => {
                let [client, servers] = halve(&cpus);
                let sentence = pinned(&client, &servers) + " Both are threads of one core.";
                Self {
                    client,
                    servers,
                    sentence,
                }
            }
            _ => Self {
                client: Vec::new(),
                servers: Vec::new(),
                sentence: "Client and servers share the only CPU: a round trip includes switching between them."
                    .to_owned(),
            },
        }
    }

    /// Confines this process, and the threads that it starts, to the client's CPUs.
    pub fn confine_client(&self) {
        if !self.client.is_empty() {
            cores::confine(&self.client);
        }
    }
}

fn pinned(client: &[usize], servers: &[usize]) -> String {
    let name = |cpus: &[usize]| {
        let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        format!("{noun} {}", cores::show(cpus))
    };
    format!("Client on {}, servers on {}.", name(client), name(servers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_core_stay_together_if_they_can() {
        let split = |cores: &[&[usize]]| {
            let cores: Vec<Vec<usize>> = cores.iter().map(|core| core.to_vec()).collect();
            let Sides {
                client, servers, ..
            } = Sides::split(&cores);
            [client, servers]
        };
        assert_eq!(split(&[&[0, 2], &[1, 3]]), [vec![0, 2], vec![1, 3]]);
        assert_eq!(split(&[&[0], &[1], &[2]]), [vec![0], vec![1, 2]]);
        assert_eq!(split(&[&[4, 5]]), [vec![4], vec![5]]);
        assert_eq!(split(&[&[4]]), [Vec::<usize>::new(), Vec::new()]);
        assert_eq!(
            Sides::split(&[vec![0, 4], vec![1, 5]]).sentence,
            "Client on CPUs 0,4, servers on CPUs 1,5."
        );
    }
}

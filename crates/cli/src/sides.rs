//! The CPUs of client and servers, which share a machine.

use netping_results::format::cpus;
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
        let [own, theirs] = [&client, &servers].map(|own| cpus(own));
        Self {
            client,
            servers,
            sentence: format!("Client on {own}, servers on {theirs}."),
        }
    }

    /// Leaves the choice to the scheduler.
    pub fn unpinned(sentence: &str) -> Self {
        Self {
            client: Vec::new(),
            servers: Vec::new(),
            sentence: sentence.to_owned(),
        }
    }

    /// Splits the CPUs of this process, of which each core has a list, in two halves. The CPUs of a
    /// core stay together where there is more than one core.
    pub fn split(cores: &[Vec<usize>]) -> Self {
        if cores.len() > 1 {
            let (client, servers) = cores.split_at(cores.len() / 2);
            return Self::given(client.concat(), servers.concat());
        }
        let cpus = cores.concat();
        if cpus.len() < 2 {
            return Self::unpinned(
                "Client and servers share the only CPU: a round trip includes switching between them.",
            );
        }
        let (client, servers) = cpus.split_at(cpus.len() / 2);
        let mut sides = Self::given(client.to_vec(), servers.to_vec());
        sides.sentence += " Both are threads of one core.";
        sides
    }

    /// Confines this process, and the threads that it starts, to the client's CPUs.
    pub fn confine_client(&self) {
        if !self.client.is_empty() {
            cores::confine(&self.client);
        }
    }
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

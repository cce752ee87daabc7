//! Windows that were measured again.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::warning::{ForeignLoad, Warning};

/// The windows that were measured again since other programs had the CPUs. They were chosen by the balance
/// of the CPUs alone, and their steps are not among the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replaced {
    /// Their number.
    pub windows: u32,
    /// What disturbed the worst of them.
    pub worst: ForeignLoad,
}

impl Run {
    /// Counts a window that is measured again because of this load.
    pub fn count_replaced(&mut self, load: ForeignLoad) {
        let Some(known) = &mut self.replaced else {
            self.replaced = Some(Replaced {
                windows: 1,
                worst: load,
            });
            return;
        };
        known.windows = known.windows.saturating_add(1);
        let [own, worst] = [&load, &known.worst].map(|load| Warning::from(load.clone()));
        if own.is_worse_than(&worst) {
            known.worst = load;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures, warning::SideOfCpus};

    #[test]
    fn the_worst_of_the_windows_speaks_for_them() {
        let load = |others| ForeignLoad {
            side: SideOfCpus::Server,
            others,
            steal: 0.0,
            waited: 0.0,
            busiest: None,
        };
        let mut run = fixtures::run(Vec::new());
        for others in [0.1, 0.3, 0.2] {
            run.count_replaced(load(others));
        }
        let (windows, worst) = (3, load(0.3));
        assert_eq!(run.replaced, Some(Replaced { windows, worst }));
    }
}

//! Requests that are encoded before a run and used in turn.

use bytes::Bytes;

use crate::payload::Exchange;

/// The bodies of requests, in the order in which callers use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Never empty.
    bodies: Vec<Bytes>,
    order: Order,
}

/// The order in which a caller uses the bodies of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// One after the other; each caller begins one further than the caller before.
    #[default]
    Turn,
    /// Any of them each time, all with the same probability and the same in every run.
    Random,
}

impl Order {
    /// Returns its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Random => "random",
        }
    }
}

impl Default for Pool {
    /// Returns a pool of one empty body.
    fn default() -> Self {
        Self {
            bodies: vec![Bytes::new()],
            order: Order::Turn,
        }
    }
}

impl Pool {
    /// Returns a pool of these bodies; `None` if there is none.
    pub fn new(bodies: Vec<Bytes>, order: Order) -> Option<Self> {
        (!bodies.is_empty()).then_some(Self { bodies, order })
    }

    /// Returns the body of an exchange's current request.
    pub fn body(&self, exchange: &Exchange) -> &Bytes {
        let caller = u64::from(exchange.caller());
        let sequence = u64::from(exchange.sequence());
        let number = match self.order {
            Order::Turn => caller + sequence,
            Order::Random => scatter(caller << 32 | sequence),
        };
        &self.bodies[(number % self.bodies.len() as u64) as usize]
    }

    /// Returns the bodies.
    pub fn bodies(&self) -> &[Bytes] {
        &self.bodies
    }

    /// Returns the order of use.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the mean length of a body, in bytes.
    pub fn mean_length(&self) -> usize {
        let total: usize = self.bodies.iter().map(Bytes::len).sum();
        total / self.bodies.len()
    }
}

/// Spreads consecutive numbers over all of them (the output function of SplitMix64: Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Reply;

    /// Returns the bodies that `caller` uses for its first requests.
    fn used(pool: &Pool, caller: u32, requests: usize) -> Vec<u8> {
        let mut exchange = Exchange::new(caller, 4, Reply::Echo);
        let next = |_| {
            let first = pool.body(&exchange)[0];
            exchange.advance();
            first
        };
        (0..requests).map(next).collect()
    }

    fn pool(order: Order) -> Pool {
        let bodies = (0..5).map(|body: u8| Bytes::from(vec![body])).collect();
        Pool::new(bodies, order).unwrap()
    }

    #[test]
    fn callers_use_bodies_in_turn_from_different_ones_on() {
        let pool = pool(Order::Turn);
        assert_eq!(used(&pool, 0, 7), [0, 1, 2, 3, 4, 0, 1]);
        assert_eq!(used(&pool, 3, 3), [3, 4, 0]);
    }

    #[test]
    fn random_bodies_are_all_used_as_often_and_repeatably() {
        let pool = pool(Order::Random);
        let first = used(&pool, 1, 5_000);
        assert_eq!(first, used(&pool, 1, 5_000));
        assert_ne!(first, used(&pool, 2, 5_000));
        let mut counts = [0; 5];
        for body in first {
            counts[usize::from(body)] += 1;
        }
        for (body, count) in counts.into_iter().enumerate() {
            // Five standard deviations of a binomial are 141.
            assert!((859..=1141).contains(&count), "{body}: {count}");
        }
    }

    #[test]
    fn a_pool_has_a_body() {
        assert_eq!(Pool::new(Vec::new(), Order::Turn), None);
        assert_eq!(used_once(&Pool::default()), b"");
    }

    fn used_once(pool: &Pool) -> &[u8] {
        pool.body(&Exchange::new(0, 4, Reply::Echo))
    }
}

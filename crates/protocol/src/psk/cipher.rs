//! ChaCha20-Poly1305 of the library that TLS uses, for Noise: snow's own is portable and slower.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use snow::{
    Error,
    params::{CipherChoice, DHChoice, HashChoice},
    resolvers::{CryptoResolver, DefaultResolver},
    types::{Cipher, Dh, Hash, Random},
};

/// Length of a message's authentication tag, in bytes.
pub(super) const TAG: usize = 16;

/// Snow's own primitives, but for the cipher.
pub(super) struct Resolver;

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        DefaultResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        (*choice == CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly(key(&[0; 32]))) as _)
    }
}

/// The cipher with its key; with one of zeros until it is set, which snow does before each use.
struct ChaChaPoly(LessSafeKey);

fn key(bytes: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, bytes);
    LessSafeKey::new(key.expect("the key has the cipher's length"))
}

/// Returns the nonce of a message: four zeros, then its number in little-endian.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, bytes: &[u8; 32]) {
        self.0 = key(bytes);
    }

    fn encrypt(&self, number: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (sealed, rest) = out.split_at_mut(plaintext.len());
        let sealing = self.0.seal_out_of_place_scatter(
            nonce(number),
            Aad::from(authtext),
            plaintext,
            sealed,
            &[],
            &mut rest[..TAG],
        );
        sealing.expect("a Noise message is far shorter than the cipher's limit");
        plaintext.len() + TAG
    }

    fn decrypt(
        &self,
        number: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (sealed, tag) = ciphertext.split_last_chunk::<TAG>().ok_or(Error::Decrypt)?;
        let plain = out.get_mut(..sealed.len()).ok_or(Error::Decrypt)?;
        self.0
            .open_separate_gather(nonce(number), Aad::from(authtext), sealed, tag, plain)
            .map_err(|_| Error::Decrypt)?;
        Ok(sealed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the key, nonce and associated data of RFC 8439, appendix A.5, and the beginning of its
    /// text.
    #[test]
    fn the_cipher_is_that_of_the_standard() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = text.as_bytes().chunks(2);
            let byte = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            digits.map(byte).collect()
        };
        let bytes = hex("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
        let mut cipher = ChaChaPoly(key(&[0; 32]));
        cipher.set(&bytes.try_into().unwrap());
        let number = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
        let authtext = hex("f33388860000000000004e91");
        let text = b"Internet-Drafts ";
        let mut sealed = [0; 16 + TAG];
        assert_eq!(cipher.encrypt(number, &authtext, text, &mut sealed), 32);
        assert_eq!(sealed[..16], hex("64a0861575861af460f062c79be643bd")[..]);
        let mut plain = [0; 16];
        assert_eq!(
            cipher.decrypt(number, &authtext, &sealed, &mut plain),
            Ok(16)
        );
        assert_eq!(&plain, text);
        sealed[20] ^= 1;
        let changed = cipher.decrypt(number, &authtext, &sealed, &mut plain);
        assert_eq!(changed, Err(Error::Decrypt));
    }
}

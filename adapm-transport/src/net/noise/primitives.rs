//! The primitives of Noise: X25519 of `x25519-dalek`, AES-256-GCM of `ring`, SHA-256 of `sha2`.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use sha2::{Digest, Sha256};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use x25519_dalek::{PublicKey, StaticSecret};

/// The resolver of snow's primitives; its only random bytes are those of the ephemeral key, given
/// once.
pub(super) struct Primitives(pub(super) [u8; 32]);

struct Given(Option<[u8; 32]>);

struct X25519 {
    private: StaticSecret,
    public: PublicKey,
}

struct AesGcm(LessSafeKey);

#[derive(Default)]
struct Sha(Sha256);

/// Returns an AES-256-GCM key.
pub(super) fn key(bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).expect("AES-256 has keys of 32 bytes"))
}

/// Returns the nonce of that number, as Noise defines it for AES-GCM (section 12.4).
pub(super) fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Encrypts `bytes` in place, and returns their tag.
pub(super) fn seal(
    key: &LessSafeKey,
    number: u64,
    associated: &[u8],
    bytes: &mut [u8],
) -> [u8; 16] {
    let sealed = key.seal_in_place_separate_tag(nonce(number), Aad::from(associated), bytes);
    let tag = sealed.expect("packets are far below the bound of GCM");
    tag.as_ref().try_into().expect("a tag has 16 bytes")
}

/// Decrypts `bytes` in place. Returns false if they or `associated` are not those sealed under this
/// number.
#[must_use]
pub(super) fn open(
    key: &LessSafeKey,
    number: u64,
    associated: &[u8],
    tag: [u8; 16],
    bytes: &mut [u8],
) -> bool {
    let (associated, tag) = (Aad::from(associated), Tag::from(tag));
    key.open_in_place_separate_tag(nonce(number), associated, tag, bytes, 0..).is_ok()
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Given(Some(self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let none =
            || X25519 { private: StaticSecret::from([0; 32]), public: PublicKey::from([0; 32]) };
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(none()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| Box::new(Sha::default()) as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::AESGCM)
            .then(|| Box::new(AesGcm(key(&[0; 32]))) as Box<dyn Cipher>)
    }
}

impl Random for Given {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let given = self.0.take().filter(|given| given.len() == bytes.len()).ok_or(Error::Rng)?;
        bytes.copy_from_slice(&given);
        Ok(())
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        let private: [u8; 32] = private.try_into().expect("a private key has 32 bytes");
        self.private = private.into();
        self.public = (&self.private).into();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; 32];
        random.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn privkey(&self) -> &[u8] {
        self.private.as_bytes()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public: [u8; 32] =
            public.get(..32).and_then(|key| key.try_into().ok()).ok_or(Error::Dh)?;
        let shared = self.private.diffie_hellman(&public.into());
        out[..32].copy_from_slice(shared.as_bytes());
        Ok(())
    }
}

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, bytes: &[u8; 32]) {
        self.0 = key(bytes);
    }

    fn encrypt(&self, number: u64, associated: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (sealed, behind) = out.split_at_mut(plain.len());
        sealed.copy_from_slice(plain);
        behind[..16].copy_from_slice(&seal(&self.0, number, associated, sealed));
        plain.len() + 16
    }

    fn decrypt(
        &self,
        number: u64,
        associated: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (sealed, tag) = sealed.split_last_chunk().ok_or(Error::Decrypt)?;
        let out = &mut out[..sealed.len()];
        out.copy_from_slice(sealed);
        if open(&self.0, number, associated, *tag, out) {
            Ok(sealed.len())
        } else {
            Err(Error::Decrypt)
        }
    }
}

impl Hash for Sha {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Sha256::new();
    }

    fn input(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&core::mem::take(&mut self.0).finalize());
    }
}

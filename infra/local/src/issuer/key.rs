//! The issuer's key, in a file that all programs of a target folder share: whoever needs it first makes it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::rsa;
use crate::binaries;

/// Name of the key's file in the target folder.
const FILE: &str = "local-issuer.pkcs8";

/// Size of the key.
const SIZE: KeySize = KeySize::Rsa2048;

/// A key that cannot be had, or not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Nobody knows where it is.
    #[error("the issuer's key is in cargo's target folder, and this program is in none: name a file with --issuer-key")]
    NoPlace,
    /// The file cannot be read or written.
    #[error("cannot use the issuer's key {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{} is not an RSA key in PKCS #8: {reason}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No key can be made.
    #[error("cannot make a key for the issuer")]
    Generate,
    /// A token cannot be signed.
    #[error("cannot sign a token")]
    Sign(#[from] jsonwebtoken::errors::Error),
}

/// A private key.
#[derive(Debug, Clone)]
pub struct SigningKey {
    id: String,
    private: EncodingKey,
    public: Vec<u8>,
}

/// Public keys by their ids, as an issuer publishes them.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(BTreeMap<String, DecodingKey>);

/// Returns where the key is unless another place is given.
///
/// # Errors
///
/// When the program was not built by cargo.
pub fn default_path() -> Result<PathBuf, KeyError> {
    binaries::target_folder().map(|folder| folder.join(FILE)).ok_or(KeyError::NoPlace)
}

impl SigningKey {
    /// Makes a new key that is kept nowhere.
    ///
    /// # Errors
    ///
    /// When there is no randomness to be had.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_pkcs8(generate()?.as_ref()).map_err(|_| KeyError::Generate)
    }

    /// Reads the key from its file, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or made, or holds something else.
    pub fn of_file(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let der = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                publish(path, generate()?.as_ref()).map_err(failed)?;
                std::fs::read(path).map_err(failed)?
            }
            read => read.map_err(failed)?,
        };
        Self::from_pkcs8(&der).map_err(|reason| KeyError::NotAKey { path: path.to_owned(), reason })
    }

    /// Returns the key's id, a digest of its public half.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the public half as DER of an `RSAPublicKey` ([RFC 8017](https://www.rfc-editor.org/rfc/rfc8017#appendix-A.1.1)).
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the public half, as an issuer with this key alone publishes it.
    pub fn public_keys(&self) -> PublicKeys {
        PublicKeys([(self.id.clone(), DecodingKey::from_rsa_der(&self.public))].into())
    }

    /// Signs claims.
    ///
    /// # Errors
    ///
    /// When the claims have no JSON form, or the header names an algorithm other than RSA's.
    pub fn sign(&self, header: &Header, claims: &impl Serialize) -> Result<String, KeyError> {
        Ok(jsonwebtoken::encode(header, claims, &self.private)?)
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        rsa::install();
        let pair = KeyPair::from_pkcs8(der).map_err(|error| error.to_string())?;
        let public = pair.public_key().as_ref().to_vec();
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &public));
        Ok(Self { id, private: EncodingKey::from_rsa_der(der), public })
    }
}

impl PublicKeys {
    /// Returns the claims of a token that one of the keys has signed; nothing says that they are good.
    pub fn claims(&self, token: &str) -> Option<Map<String, Value>> {
        rsa::install();
        let key = self.0.get(jsonwebtoken::decode_header(token).ok()?.kid.as_deref()?)?;
        let mut signature_alone = Validation { algorithms: rsa::algorithms(), ..Validation::default() };
        signature_alone.required_spec_claims.clear();
        signature_alone.validate_exp = false;
        signature_alone.validate_aud = false;
        jsonwebtoken::decode(token, key, &signature_alone).ok().map(|decoded| decoded.claims)
    }
}

fn generate() -> Result<Pkcs8V1Der<'static>, KeyError> {
    KeyPair::generate(SIZE).and_then(|pair| pair.as_der()).map_err(|_| KeyError::Generate)
}

/// Puts a key into its place, unless another process was faster. Nobody ever sees half a key.
fn publish(path: &Path, der: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension(Uuid::new_v4().to_string());
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?.write_all(der)?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn all_who_need_the_key_at_once_get_the_same_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/key");
        let ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| SigningKey::of_file(&path).unwrap().id().to_owned())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });

        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(SigningKey::of_file(&path).unwrap().id(), ids[0]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "no key").unwrap();
        let error = SigningKey::of_file(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is not an RSA key", path.display())), "{error}");

        let error = SigningKey::of_file(Path::new("/dev/null/key")).unwrap_err().to_string();
        assert_eq!(error, "cannot use the issuer's key /dev/null/key");
    }
}

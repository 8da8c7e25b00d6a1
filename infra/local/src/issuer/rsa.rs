//! RSA signatures for the token library, by the provider of cryptography that the TLS stack brings along. There is no other
//! algorithm here, as there is none in API Gateway's JWT authorizers.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RsaEncoding, RsaParameters, UnparsedPublicKey,
};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};

/// An algorithm, and how it signs and verifies.
struct Rsa {
    algorithm: Algorithm,
    signing: &'static dyn RsaEncoding,
    verifying: &'static RsaParameters,
}

static ALGORITHMS: [Rsa; 3] = [
    Rsa { algorithm: Algorithm::RS256, signing: &RSA_PKCS1_SHA256, verifying: &RSA_PKCS1_2048_8192_SHA256 },
    Rsa { algorithm: Algorithm::RS384, signing: &RSA_PKCS1_SHA384, verifying: &RSA_PKCS1_2048_8192_SHA384 },
    Rsa { algorithm: Algorithm::RS512, signing: &RSA_PKCS1_SHA512, verifying: &RSA_PKCS1_2048_8192_SHA512 },
];

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Makes this the token library's cryptography; what was installed first stays.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// Returns the algorithms that there are.
pub(super) fn algorithms() -> Vec<Algorithm> {
    ALGORITHMS.iter().map(|rsa| rsa.algorithm).collect()
}

struct RsaSigner {
    rsa: &'static Rsa,
    key: KeyPair,
}

impl Signer<Vec<u8>> for RsaSigner {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let mut signature = vec![0; self.key.public_modulus_len()];
        let signed = self.key.sign(self.rsa.signing, &SystemRandom::new(), message, &mut signature);
        signed.map(|()| signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for RsaSigner {
    fn algorithm(&self) -> Algorithm {
        self.rsa.algorithm
    }
}

struct RsaVerifier {
    rsa: &'static Rsa,
    key: Vec<u8>,
}

impl Verifier<Vec<u8>> for RsaVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let key = UnparsedPublicKey::new(self.rsa.verifying, &self.key);
        key.verify(message, signature).map_err(signature::Error::from_source)
    }
}

impl JwtVerifier for RsaVerifier {
    fn algorithm(&self) -> Algorithm {
        self.rsa.algorithm
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let rsa = known(*algorithm, key.family())?;
    let key = KeyPair::from_pkcs8(key.as_bytes()).map_err(|error| ErrorKind::InvalidRsaKey(error.to_string()))?;
    Ok(Box::new(RsaSigner { rsa, key }))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let rsa = known(*algorithm, key.family())?;
    Ok(Box::new(RsaVerifier { rsa, key: key.try_get_as_bytes()?.to_vec() }))
}

fn known(algorithm: Algorithm, family: AlgorithmFamily) -> Result<&'static Rsa, ErrorKind> {
    if family != AlgorithmFamily::Rsa {
        return Err(ErrorKind::InvalidKeyFormat);
    }
    ALGORITHMS.iter().find(|rsa| rsa.algorithm == algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)
}

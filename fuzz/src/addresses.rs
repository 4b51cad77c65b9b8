//! Target `addresses`: any text is an address or is refused in one line; addresses survive printing
//! and parsing.
//!
//! Texts of addresses come from flags, variables, the rendezvous file and other processes; secrets
//! from files and variables. Not here: host names, which the system resolves.

use adapm_transport::net::{Address, Kind, Token};
use adapm_transport::testing::{host_and_port, rendezvous};

/// Parses `bytes` as text. Returns true if it is an address of some kind.
pub fn addresses(bytes: &[u8]) -> bool {
    let secret = Token::new(bytes);
    let fits = (Token::BYTES_MIN..=Token::BYTES_MAX).contains(&bytes.len());
    let different = (0..=u8::MAX).filter(|byte| bytes.contains(byte)).count();
    assert_eq!(
        secret.is_ok(),
        fits && different >= Token::DIFFERENT_MIN,
        "a secret has a length and many bytes"
    );
    if let Ok(secret) = secret {
        assert_eq!(format!("{secret:?}"), "Token(..)", "a secret is not shown");
    }
    let (form, text) = bytes.split_first().map_or((0, bytes), |(form, rest)| (*form, rest));
    let text = String::from_utf8_lossy(text);
    // Half of the inputs are whole texts, the others follow a scheme.
    let kinds = Kind::ALL.map(Kind::scheme);
    let text = match form {
        0..128 => text.into_owned(),
        form => format!("{}://{text}", kinds[usize::from(form) % kinds.len()]),
    };
    let parsed = text.parse::<Address>();
    match &parsed {
        Ok(address) => {
            let again = address.to_string();
            assert_eq!(
                again.parse::<Address>().as_ref(),
                Ok(address),
                "{again} is read as it is written"
            );
            assert_eq!(
                address.kind().scheme().parse(),
                Ok(address.kind()),
                "a scheme names its kind"
            );
        }
        Err(error) => one_line(&error.to_string()),
    }
    let reached = host_and_port(&text);
    if let Err(error) = &reached {
        one_line(error);
    }
    let met = rendezvous(&text);
    if let Some(address) = met {
        assert_eq!(
            rendezvous(&format!("{address}\n")),
            met,
            "a rendezvous is read as it is written"
        );
        assert!(host_and_port(&address.to_string()).is_ok(), "{address} is a host and a port");
    }
    parsed.is_ok() || reached.is_ok() || met.is_some()
}

fn one_line(error: &str) {
    assert!(
        !error.contains(char::is_control),
        "an error is one line without control characters: {error:?}"
    );
}

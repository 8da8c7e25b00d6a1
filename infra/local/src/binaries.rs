//! Builds the binaries of the functions with cargo, in the profile and target folder of the running stack. Starts none.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tokio::process::Command;

use crate::model::Function;

/// Marks cargo's target folder.
const TARGET_TAG: &str = "CACHEDIR.TAG";

/// Binaries that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The path of the running program does not look like one that cargo built.
    #[error("{} was not built by cargo: name the folder of the functions' binaries with --binaries", path.display())]
    NotCargo {
        /// The running program.
        path: PathBuf,
    },
    /// The path of the running program is unknown.
    #[error("the path of the running program is unknown")]
    Unknown {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// No workspace around the template.
    #[error("no Cargo.toml with a [workspace] in {} or above it", template.display())]
    NoWorkspace {
        /// The template's folder.
        template: PathBuf,
    },
    /// Cargo could not be started.
    #[error("cannot start {}", cargo.to_string_lossy())]
    Start {
        /// Cargo's path.
        cargo: OsString,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// Cargo failed.
    #[error("cargo could not build the functions {names}: {status}")]
    Failed {
        /// The binaries.
        names: String,
        /// How cargo ended.
        status: ExitStatus,
    },
}

/// Where and how a program was built.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Built {
    target: PathBuf,
    /// Target triple, where one was asked for.
    triple: Option<String>,
    profile: String,
    /// Folder of the binaries.
    folder: PathBuf,
}

/// Builds the functions' binaries as the running program was built, shows cargo's output, and returns their folder.
///
/// # Errors
///
/// When the running program was not built by cargo, or cargo fails.
pub async fn build(template: &Path, functions: &[Function]) -> Result<PathBuf, BuildError> {
    let program = std::env::current_exe().map_err(|source| BuildError::Unknown { source })?;
    let built = Built::find(&program, |path| path.exists()).ok_or(BuildError::NotCargo { path: program })?;
    let names: BTreeSet<_> = functions.iter().map(|function| function.binary.as_str()).collect();
    if names.is_empty() {
        return Ok(built.folder);
    }
    let folder = template.parent().unwrap_or(template);
    let manifest = workspace(folder).ok_or_else(|| BuildError::NoWorkspace { template: folder.to_owned() })?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(arguments(&built, &names)).arg("--manifest-path").arg(manifest).arg("--target-dir").arg(&built.target);
    // Output of a build belongs to the same screen as that of the build before it.
    let status = command.kill_on_drop(true).status().await.map_err(|source| BuildError::Start { cargo, source })?;
    if status.success() {
        Ok(built.folder)
    } else {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        Err(BuildError::Failed { names, status })
    }
}

/// Returns cargo's target folder that the running program is in, if it is in one.
pub fn target_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Built::find(&program, |path| path.exists()).map(|built| built.target)
}

/// Returns cargo's arguments. No package is named: the packages chosen decide the features of what they share, and so
/// the functions are built with the dependencies that `cargo run` has just built.
fn arguments(built: &Built, names: &BTreeSet<&str>) -> Vec<String> {
    let mut arguments = vec!["build".to_owned(), "--profile".to_owned(), built.profile.clone()];
    if let Some(triple) = &built.triple {
        arguments.extend(["--target".to_owned(), triple.clone()]);
    }
    arguments.extend(names.iter().flat_map(|name| ["--bin".to_owned(), (*name).to_owned()]));
    arguments
}

impl Built {
    /// Reads from a program's path how it was built: `<target>[/<triple>]/<profile>[/deps or examples]/<program>`.
    fn find(program: &Path, exists: impl Fn(&Path) -> bool) -> Option<Self> {
        let mut folder = program.parent()?;
        if ["deps", "examples"].iter().any(|name| folder.ends_with(name)) {
            folder = folder.parent()?;
        }
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        // The folder of the profile `dev` has another name.
        let profile = name(folder).map(|name| if name == "debug" { "dev".to_owned() } else { name })?;
        let above = folder.parent()?;
        let (target, triple) = match above.parent() {
            _ if exists(&above.join(TARGET_TAG)) => (above, None),
            Some(target) if exists(&target.join(TARGET_TAG)) => (target, Some(name(above)?)),
            Some(_) | None => return None,
        };
        Some(Self { target: target.to_owned(), triple, profile, folder: folder.to_owned() })
    }
}

/// Returns the manifest of the workspace in a folder or above it.
fn workspace(folder: &Path) -> Option<PathBuf> {
    let is_workspace = |manifest: &PathBuf| {
        std::fs::read_to_string(manifest).is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    };
    folder.ancestors().map(|folder| folder.join("Cargo.toml")).find(is_workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, tag: &str, expected: Option<(&str, Option<&str>, &str, &str)>) {
        let built = Built::find(Path::new(program), |path| path == Path::new(tag));
        let expected = expected.map(|(target, triple, profile, folder)| Built {
            target: target.into(),
            triple: triple.map(str::to_owned),
            profile: profile.to_owned(),
            folder: folder.into(),
        });
        assert_eq!(built, expected, "{program}");
    }

    #[test]
    fn profile_and_target_folder_are_those_of_the_program() {
        let tag = "/w/target/CACHEDIR.TAG";

        check("/w/target/debug/local", tag, Some(("/w/target", None, "dev", "/w/target/debug")));
        check("/w/target/release/local", tag, Some(("/w/target", None, "release", "/w/target/release")));
        check("/w/target/small/local", tag, Some(("/w/target", None, "small", "/w/target/small")));
        check("/w/target/debug/deps/stack-1234", tag, Some(("/w/target", None, "dev", "/w/target/debug")));
        check(
            "/w/target/x86_64-unknown-linux-musl/release/local",
            tag,
            Some((
                "/w/target",
                Some("x86_64-unknown-linux-musl"),
                "release",
                "/w/target/x86_64-unknown-linux-musl/release",
            )),
        );
    }

    #[test]
    fn a_program_that_cargo_did_not_build_has_no_profile() {
        check("/usr/bin/local", "/w/target/CACHEDIR.TAG", None);
        check("/local", "/w/target/CACHEDIR.TAG", None);
    }

    #[test]
    fn binaries_are_named_one_by_one() {
        let built = Built {
            target: "/t".into(),
            triple: Some("triple".to_owned()),
            profile: "dev".to_owned(),
            folder: "/t/debug".into(),
        };

        let arguments = arguments(&built, &BTreeSet::from(["api", "game-ended"]));

        assert_eq!(arguments.join(" "), "build --profile dev --target triple --bin api --bin game-ended");
    }
}

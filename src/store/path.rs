//! One name for one directory, however it was spelled.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The path without links. Windows gives it as `\\?\C:\...`, which is for names that are longer than
/// this package makes them: few programs take that, and URLs do not.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    if !cfg!(windows) {
        return Ok(path);
    }
    let plain = path.to_str().and_then(|path| path.strip_prefix(r"\\?\")).filter(|path| {
        // Of a drive, and with room for a file's name below 260 characters.
        path.as_bytes().get(1) == Some(&b':') && path.len() < 150
    });
    Ok(plain.map(PathBuf::from).unwrap_or(path))
}

//! Where the content that `flowstart get` gets goes.

use std::path::{Path, PathBuf};

use flowstart_files::{begin_beside, put_in_place};
use tokio::io::AsyncWrite;

use super::while_read::WhileRead;
use crate::failure::Failure;

/// The destination of the content. A file is there when it is complete: until then its content has another name.
pub(super) struct Out {
    pub(super) writer: Box<dyn AsyncWrite + Unpin + Send>,
    /// The name until then, and the one that it gets.
    growing: Option<(PathBuf, PathBuf)>,
}

impl Out {
    /// The file of this name, standard output for `-`, or nothing.
    ///
    /// # Errors
    ///
    /// The file, and why it cannot be written.
    pub(super) async fn open(out: Option<&Path>) -> Result<Self, Failure> {
        let file = match out {
            None => return Ok(Self { writer: Box::new(tokio::io::sink()), growing: None }),
            Some(out) if out.as_os_str() == "-" => {
                return Ok(Self { writer: Box::new(WhileRead(tokio::io::stdout())), growing: None });
            }
            Some(file) => file.to_owned(),
        };
        let create = async |file: &Path| tokio::fs::File::create(file).await.map_err(|error| unwritten(file, &error));
        // What is there already may be a device or a pipe.
        if tokio::fs::metadata(&file).await.is_ok_and(|found| !found.is_file()) {
            return Ok(Self { writer: Box::new(create(&file).await?), growing: None });
        }
        let (new, begun) = begin_beside(&file).map_err(|error| unwritten(&file, &error))?;
        Ok(Self { writer: Box::new(tokio::fs::File::from_std(begun)), growing: Some((new, file)) })
    }

    /// All of the content is here.
    pub(super) async fn complete(&mut self) -> Result<(), Failure> {
        let Some((new, file)) = &self.growing else { return Ok(()) };
        let (from, to) = (new.clone(), file.clone());
        let put = tokio::task::spawn_blocking(move || put_in_place(&from, &to)).await;
        put.unwrap_or_else(|error| Err(error.into())).map_err(|error| unwritten(file, &error))?;
        self.growing = None;
        Ok(())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Some((new, _)) = &self.growing {
            let _ = std::fs::remove_file(new);
        }
    }
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    Failure::File { file: file.to_owned(), message: format!("cannot be written: {error}"), text: None }
}

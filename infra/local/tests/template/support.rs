//! Writes templates to a folder of their own and reads them.

use std::collections::BTreeMap;

use local::model::Model;
use local::template::{TemplateError, read};

/// A function that needs no more than this, to be followed by its events or further properties.
pub(crate) const FUNCTION: &str = "
  Function:
    Type: AWS::Serverless::Function
    Metadata:
      BuildMethod: rust-cargolambda
      BuildProperties: {Binary: worker}
    Properties:
      FunctionName: worker
      CodeUri: functions/worker
      Runtime: provided.al2023
";

/// Reads the first of some files, each a name and a text.
pub(crate) fn read_files(files: &[(&str, &str)], parameters: &[(&str, &str)]) -> Result<Model, TemplateError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let parameters: BTreeMap<String, String> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&folder.path().join(files[0].0), &parameters)
}

/// Reads one file without parameters.
pub(crate) fn read_text(text: &str) -> Result<Model, TemplateError> {
    read_files(&[("template.yaml", text)], &[])
}

//! Writes the artifacts that fuzzing starts from to a folder.

use glrgrid_fuzz as forge;

fn main() -> std::io::Result<()> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    std::fs::create_dir_all(&folder)?;
    for (name, grammar, _) in forge::GRAMMARS {
        for shared in [true, false] {
            let bytes = forge::build(grammar, &forge::vocab(), shared);
            std::fs::write(folder.join(format!("{name}-{shared}")), bytes)?;
        }
    }
    Ok(())
}

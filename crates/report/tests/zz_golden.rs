//! Scratch.
use netping_results::{compare::compare_runs, run::Run};
use netping_report::{text, verdict, export::FORMATS, words};
#[test]
fn golden() {
    let Ok(out) = std::env::var("GOLDEN") else { return };
    let src = std::env::var("GOLDEN_SRC").unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&src).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let out = std::path::PathBuf::from(out);
    std::fs::create_dir_all(&out).unwrap();
    for f in files {
        let stem = f.file_stem().unwrap().to_str().unwrap().to_owned();
        let Ok(run) = Run::load(&f) else { println!("skip {stem}"); continue };
        let mut t = text::tables_of_file(run.clone());
        t += "\n\n"; t += &verdict::describe(&run, |_| true);
        t += "\n\n"; t += &words::sentences(&run).join("\n");
        t += "\n\n"; t += &text::comparison(&compare_runs(&run, &run, &[]));
        let mut page = netping_report::page::html(std::slice::from_ref(&run));
        page += &netping_report::page::comparison(&run, std::slice::from_ref(&run), "x");
        std::fs::write(out.join(format!("{stem}.html")), page).unwrap();
        std::fs::write(out.join(format!("{stem}.txt")), t).unwrap();
        for format in &FORMATS { if format.name != "html" { format.write(std::slice::from_ref(&run), &out.join(format!("{stem}.{}", format.name))).unwrap(); } }
    }
}

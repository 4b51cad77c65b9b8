//! Machines that allow few processes and threads: a run ends with a line that names the limit,
//! whichever thread or process is the first that cannot be started, and leaves no process behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use crate::harness::{Process, binary, clean, folder, lacks, ring, runs, skip, text};

/// A control group that counts processes and threads; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// In the hierarchy that counts them: one of its own, or that of version 2.
    fn new() -> Result<Self, String> {
        let root = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter();
        let mut reasons = Vec::new();
        for root in root.filter(|root| root.join("cgroup.procs").is_file()) {
            let group = Self(root.join(format!("adapm-{}", id())));
            match fs::create_dir(&group.0) {
                Ok(()) if group.0.join("pids.max").is_file() => return Ok(group),
                Ok(()) => reasons.push(format!("{} does not count processes", root.display())),
                Err(error) => {
                    reasons.push(format!("{}: {error}", root.display()));
                    std::mem::forget(group);
                }
            }
        }
        Err(reasons.pop().unwrap_or_else(|| "no control groups are mounted".to_owned()))
    }

    /// Returns a command that runs in this group, which allows `most` processes and threads.
    fn command(&self, most: usize) -> Command {
        fs::write(self.0.join("pids.max"), most.to_string()).expect("root may limit its own group");
        let mut command = clean(Command::new("sh"));
        command.args([
            "-c",
            "echo $$ > \"$0\" && exec \"$@\"",
            text(&self.0.join("cgroup.procs")),
            binary(),
        ]);
        command
    }

    fn members(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).expect("the group exists")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn too_few_threads_end_a_launch_with_the_limit() {
    if let Some(reason) = lacks(&["sh"], true) {
        return skip("refused", &reason);
    }
    let group = match Group::new() {
        Ok(group) => group,
        Err(reason) => return skip("refused", &reason),
    };
    let data = ring(&folder("threads"));
    let launch = ["launch", "--nodes", "2", "--"];
    let train = ["train", "kge", "--data", &data, "--workers", "2", "--epochs", "1", "--no-eval"];
    let words = [&launch[..], &train].concat();
    // Each takes seconds: all of them in the long half.
    let step = if runs("ADAPM_KILL_RUNS", 1) > 1 { 1 } else { 3 };
    let (mut refused, mut most) = (0, 1);
    // Threads of a run that suffices: those of two nodes and of the launcher.
    loop {
        let run =
            Process::start("launch", group.command(most).args(&words).args(["--dim", "8"])).end();
        assert!(!run.stderr.contains("panicked"), "at {most}: {run:?}");
        assert_eq!(group.members(), "", "at {most} somebody is left: {run:?}");
        if run.code == Some(0) {
            break;
        }
        assert_eq!(run.code, Some(1), "at {most}: {run:?}");
        let limit = format!("{most} processes and threads in its control group (pids.max)");
        assert!(run.stderr.contains(&limit), "at {most}: {run:?}");
        (refused, most) = (refused + 1, most + step);
        assert!(most < 100, "two nodes have fewer threads: {run:?}");
    }
    println!("{refused} limits refused, {most} suffice");
    assert!(most >= 10, "two nodes have more threads than {most}");
}

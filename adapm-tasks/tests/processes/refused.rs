//! Machines that allow few processes and threads: a run ends with a line that names the limit,
//! whichever thread or process is the first that cannot be started, and leaves no process behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::thread;

use crate::harness::{Process, binary, clean, folder, lacks, ring, skip, text};

/// A control group that counts processes and threads; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// In the hierarchy that counts them: one of its own, or that of version 2.
    fn new(number: usize) -> Result<Self, String> {
        let root = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter();
        let mut reasons = Vec::new();
        for root in root.filter(|root| root.join("cgroup.procs").is_file()) {
            let group = Self(root.join(format!("adapm-{}-{number}", id())));
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
    let data = ring(&folder("threads"));
    let launch = ["launch", "--nodes", "2", "--"];
    let train = ["train", "kge", "--data", &data, "--workers", "2", "--epochs", "1", "--no-eval"];
    let words = &[&launch[..], &train, &["--dim", "8"]].concat();
    // A launch that is refused waits most of its time: some go on beside each other.
    let lanes: Result<Vec<Group>, String> = (0..LANES).map(Group::new).collect();
    let lanes = match lanes {
        Ok(lanes) => lanes,
        Err(reason) => return skip("refused", &reason),
    };
    let lane = |(first, group): (usize, Group)| {
        // Threads of a run that suffices: those of two nodes and of the launcher.
        for most in (first + 1..100).step_by(LANES) {
            let run = Process::start("launch", group.command(most).args(words)).end();
            assert!(!run.stderr.contains("panicked"), "at {most}: {run:?}");
            assert_eq!(group.members(), "", "at {most} somebody is left: {run:?}");
            if run.code == Some(0) {
                return (most - first - 1) / LANES;
            }
            assert_eq!(run.code, Some(1), "at {most}: {run:?}");
            let limit = format!("{most} processes and threads in its control group (pids.max)");
            assert!(run.stderr.contains(&limit), "at {most}: {run:?}");
        }
        panic!("two nodes have fewer threads than 100");
    };
    let refused: usize = thread::scope(|scope| {
        let lane = &lane;
        let lanes = lanes.into_iter().enumerate();
        let threads: Vec<_> = lanes.map(|one| scope.spawn(move || lane(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("each limit is named")).sum()
    });
    println!("{refused} limits refused");
    assert!(refused >= 10, "two nodes have more threads than {refused}");
}

/// Launches beside each other, each in a group of its own.
const LANES: usize = 4;
